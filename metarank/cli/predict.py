"""Rank the labels of every row of a file, or of texts typed on the command line."""

from __future__ import annotations

import argparse
import csv
import json
from typing import IO, Any

from metarank.cli._common import (
    add_jobs_option,
    add_reading_options,
    label_name,
    load_model,
    read_dataset,
    writing,
)
from metarank.cli.label_lists import FORMAT, read_label_lists

HELP = "rank labels for new rows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("model", metavar="DIR")
    parser.add_argument("input", metavar="INPUT", nargs="?", help="data file; leave out with --text")
    parser.add_argument("--text", action="append", metavar="TEXT", help="a text to label (may be repeated)")
    parser.add_argument(
        "--top", type=int, default=None, metavar="K", help="labels a row (default 10; with --optimize all)"
    )
    parser.add_argument(
        "--optimize", metavar="METRIC", help="keep only the labels above the cut learned for METRIC"
    )
    parser.add_argument("--out", default="-", metavar="FILE", help="file to write (default: standard output)")
    parser.add_argument(
        "--format",
        choices=("txt", "csv", "jsonl"),
        help="txt (label:score a row), csv or jsonl; default by --out",
    )
    group = parser.add_argument_group("label lists", description=f"Each FILE: {FORMAT}.")
    group.add_argument("--exclude", metavar="FILE", help="labels not to be ranked (one line: for all rows)")
    group.add_argument("--allowed", metavar="FILE", help="all that may be ranked (one line: for all rows)")
    group.add_argument("--candidates", metavar="FILE", help="shortlists of your own, ranked instead")
    add_jobs_option(parser)
    add_reading_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    if args.top is not None and args.top < 1:
        raise ValueError(f"--top must be positive, got {args.top}")
    if (args.input is None) == (args.text is None):
        raise ValueError("give either INPUT or --text")
    if args.candidates is not None and args.optimize is not None:
        raise ValueError("--candidates goes without --optimize: cuts are for the model's own candidates")
    kind = args.format or {"csv": "csv", "jsonl": "jsonl"}.get(args.out.rsplit(".", 1)[-1], "txt")
    with writing(args.out) as out:
        model = load_model(args.model, args)
        rows: Any = args.text if args.text is not None else read_dataset(args.input, args, model)
        top = args.top or (10 if args.optimize is None else model.n_labels_)
        n_rows = len(args.text) if args.text is not None else rows.n_rows
        limits = {
            name: read_label_lists(path, model, n_rows, option=f"--{name}", one_for_all=True)
            for name, path in (("exclude", args.exclude), ("allowed", args.allowed))
            if path is not None
        }
        own = None
        if args.candidates is not None:
            own = read_label_lists(args.candidates, model, n_rows, option="--candidates")
        ranking = model.rank(rows, k=top, candidates=own, **limits)
        kept = None if args.optimize is None else model.predict(rows, optimize=args.optimize, **limits)
        writer = csv.writer(out) if kind == "csv" else None
        if writer is not None:
            writer.writerow(["row", "rank", "label", "name", "score"])
        for i in range(len(ranking.labels)):
            above = None if kept is None else set(kept.indices[kept.indptr[i] : kept.indptr[i + 1]].tolist())
            pairs = [
                (int(label), float(score))
                for label, score in zip(ranking.labels[i], ranking.scores[i])
                if label >= 0 and (above is None or int(label) in above)
            ]
            _write_row(out, writer, kind, i, pairs, model, args.text)


def _write_row(
    out: IO[str],
    writer: Any,
    kind: str,
    i: int,
    pairs: list[tuple[int, float]],
    model: Any,
    texts: list[str] | None,
) -> None:
    if writer is not None:
        for rank, (label, score) in enumerate(pairs, 1):
            writer.writerow([i, rank, label, label_name(model, label), f"{score:.6g}"])
    elif kind == "jsonl":
        labels = [{"label": lab, "name": label_name(model, lab), "score": score} for lab, score in pairs]
        out.write(json.dumps({"row": i, "labels": labels}, ensure_ascii=False) + "\n")
    elif texts is not None:
        if len(texts) > 1:
            out.write(f"{texts[i]}\n")
        out.writelines(f"{score:8.3f}  {label_name(model, label)}\n" for label, score in pairs)
    else:
        out.write(" ".join(f"{label}:{score:.6g}" for label, score in pairs) + "\n")
