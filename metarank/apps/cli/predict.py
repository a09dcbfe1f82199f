"""Rank the labels of every row of a file, or of texts typed on the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import IO, Any

from metarank._util.printable import printable
from metarank.apps.cli._options import LIST_FORMAT, PAIRS, READING, add_options
from metarank.apps.cli._printing import BINARY, ENDINGS, FORMATS, format_of, headings, write_records, writing

_OPTIONS = f"""
model input
--text TEXT ...    a text instead of INPUT; may be repeated
--top K            labels per row (default 10; all of a label set)
--optimize METRIC  write label sets, with thresholds for METRIC: micro-f1, macro-f1, example-f1, hamming,
                   subset-accuracy; or with a guarantee, 'recall>=0.9' or 'precision>=0.8'; or of least
                   expected cost, 'false_positive=1,false_negative=4'
--at-most K        at most K labels in a set (--optimize micro-f1 by default)
--at-least K       at least K labels in a set, the best ones
--quality          write label sets and the expected F1 of each, to find the surest rows
--probabilities    also write the probability of each label, without rare-label boost
--out FILE         file to write (default: standard output): {ENDINGS}
--format FORMAT    format if --out has no ending: {", ".join(FORMATS)} (default txt: a block of scores and
                   names per row)
--propensity-weight --jobs
[label lists]      Each FILE: {LIST_FORMAT}.
--exclude FILE     labels that must not be ranked (a single line applies to all rows)
--allowed FILE     the only labels that may be ranked (likewise)
--known FILE       labels you already know (likewise): they are excluded, and help to score the others
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    from metarank.thresholds.set_metrics import METRICS

    known = {"optimize": {"words": METRICS}, "format": {"choices": FORMATS}}
    add_options(parser, _OPTIONS + PAIRS + READING, out="-", **known)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli._reading import (
        check_rows,
        load_model,
        pairs_for,
        read_dataset,
        read_label_lists,
        row_ids,
    )
    from metarank.apps.listed import listed
    from metarank.data.tables import read_elsewhere
    from metarank.model.answering.explain import about_unknown_rows
    from metarank.thresholds.set_metrics import check_metric
    from metarank.thresholds.set_sizes import SetSizes

    check_rows(args)
    check_metric(args.optimize)
    sizes = SetSizes(args.at_least or 0, args.at_most)
    if args.top and (sizes or args.quality):
        raise ValueError("--top must be left out with --at-least, --at-most and --quality: use --at-most")
    sets = args.optimize is not None or sizes or args.quality
    form = format_of(args.out, args.format)
    with writing(args.out, "wb" if form in BINARY else "w") as out:
        model = load_model(args)
        rows, ids = args.text, None
        if args.text is None:
            with read_elsewhere(["id"]):
                rows = read_dataset(args.input, args, model)
            ids = row_ids(args.input, rows, args)
        top = args.top or (model.n_labels_ if sets else 10)
        n_rows = rows.n_rows if args.text is None else len(rows)
        limits: dict[str, Any] = {
            name: read_label_lists(path, model.label_table_, n_rows, option=f"--{name}", one_for_all=True)
            for name, path in (("exclude", args.exclude), ("allowed", args.allowed), ("known", args.known))
            if path is not None
        }
        limits |= pairs_for(model, args, n_rows)
        wanted = args.optimize, args.probabilities, None, limits, sizes, args.quality
        ranking, known, kept, worth = model._answers(rows, top, *wanted)
        if unknown := about_unknown_rows(ranking.without_evidence):
            print(f"metarank: {unknown}", file=sys.stderr)

        def records() -> Iterator[dict[str, Any]]:
            for i, entries in enumerate(listed(ranking, model.label_table_, known, kept)):
                labels = [entry for entry in entries if entry.pop("kept", True)]
                row_id = {} if ids is None else {"id": ids[i]}
                without_evidence = bool(ranking.without_evidence[i])
                expected = {} if worth is None else {"expected_f1": float(worth["f1"][i])}
                yield {"row": i, **row_id, **expected, "without_evidence": without_evidence, "labels": labels}

        if form == "txt":
            _write_text(out, records(), headings(rows, ids))
        else:
            names = ["row", *["id"] * (ids is not None), "rank", "label"]
            names += [*["label_id"] * (model.label_table_.own_ids is not None), "name", "score"]
            names += [
                *["probability"] * args.probabilities,
                *["expected_f1"] * args.quality,
                "without_evidence",
            ]
            write_records(out, form, records(), names)


def _write_text(out: IO[str], records: Iterator[dict[str, Any]], headings: list[str]) -> None:
    """A block per row: its heading, and below that score and name of each label, the best first."""
    from metarank.model.answering.explain import NOTHING_KNOWN

    for record in records:
        if heading := headings[record["row"]]:
            out.write(f"{printable(heading)}\n")
        if record["without_evidence"]:
            out.write(f"# {NOTHING_KNOWN}\n")
        if "expected_f1" in record:
            out.write(f"# expected F1 {100 * record['expected_f1']:.0f} %\n")
        for e in record["labels"]:
            share = f"  {100 * e['probability']:5.1f} %" if "probability" in e else ""
            out.write(f"{e['score']:8.3f}{share}  {printable(e['name'])}\n")
        if not record["labels"]:
            out.write("       -  no label\n")
