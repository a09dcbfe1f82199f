"""Rank the labels of every row of a file, or of texts typed on the command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from metarank._util.printable import printable
from metarank.apps.cli._common import (
    add_model_options,
    add_rows_options,
    check_rows,
    load_model,
    read_dataset,
)
from metarank.apps.cli._output import ENDINGS, FORMATS, form_of, opened, write_records
from metarank.apps.cli.label_lists import FORMAT, read_label_lists
from metarank.apps.cli.pair_options import add_pair_options, check_pair_options, pairs_for

if TYPE_CHECKING:
    import scipy.sparse as sp

    from metarank.model.estimator import MetaRanker
    from metarank.types.ranking import Ranking

HELP = "rank labels for new rows"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    add_rows_options(parser, "a text to label (may be repeated)")
    parser.add_argument(
        "--top", type=int, default=None, metavar="K", help="labels per row (default 10; with --optimize all)"
    )
    parser.add_argument(
        "--optimize",
        metavar="METRIC",
        help="keep only labels above the cut learned for METRIC: micro-f1, macro-f1, example-f1, hamming, "
        "subset-accuracy; or the labels that keep a promise, 'recall>=0.9', 'precision>=0.8' or 'fnr<=0.1'",
    )
    parser.add_argument(
        "--out", default="-", metavar="FILE", help=f"file to write (default: standard output): {ENDINGS}"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        help="format if --out has no ending (default txt: a block of scores and names per row)",
    )
    parser.add_argument("--crlf", action="store_true", help="lines of csv and tsv end with \\r\\n")
    group = parser.add_argument_group("label lists", description=f"Each FILE: {FORMAT}.")
    group.add_argument(
        "--exclude", metavar="FILE", help="labels that must not be ranked (a single line applies to all rows)"
    )
    group.add_argument("--allowed", metavar="FILE", help="the only labels that may be ranked (likewise)")
    add_pair_options(parser)
    add_model_options(parser)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.thresholds.set_metrics import check_metric

    check_rows(args)
    check_pair_options(args)
    check_metric(args.optimize)
    form = form_of(args.out, args.format)
    if args.crlf and form.kind not in ("csv", "tsv"):
        raise ValueError(f"--crlf goes with csv and tsv, got {form.kind}")
    with opened(args.out, form) as out:
        model = load_model(args.model, args)
        rows: Any = args.text if args.text is not None else read_dataset(args.input, args, model)
        top = args.top or (10 if args.optimize is None else model.n_labels_)
        n_rows = len(args.text) if args.text is not None else rows.n_rows
        limits: dict[str, Any] = {
            name: read_label_lists(path, model.label_table_, n_rows, option=f"--{name}", one_for_all=True)
            for name, path in (("exclude", args.exclude), ("allowed", args.allowed))
            if path is not None
        }
        limits |= pairs_for(model, args, n_rows)
        ranking = model.rank(rows, k=top, **limits)
        kept = None if args.optimize is None else model.predict(rows, optimize=args.optimize, **limits)
        _say_what_is_unknown(ranking)
        records = _records(model, ranking, kept)
        if form.kind == "txt":
            _write_text(out, records, _headings(rows))
        else:
            write_records(out, form, records, crlf=args.crlf)


def _say_what_is_unknown(ranking: Ranking) -> None:
    unknown = int(ranking.without_evidence.sum())
    if unknown:
        print(
            f"metarank: nothing of {unknown} row{'s' * (unknown > 1)} of {ranking.n_rows} is known to the "
            "model: such labels are guesses, by their frequency",
            file=sys.stderr,
        )


def _records(model: MetaRanker, ranking: Ranking, kept: sp.csr_matrix | None) -> Iterator[dict[str, Any]]:
    """A record for each row: the labels listed, of those above the cut where there is one."""
    for i, pairs in enumerate(ranking):
        above = None if kept is None else set(kept.indices[kept.indptr[i] : kept.indptr[i + 1]].tolist())
        labels = [
            {"label": label, "name": model.label_table_.shown(label), "score": score}
            for label, score in pairs
            if above is None or label in above
        ]
        yield {"row": i, "without_evidence": bool(ranking.without_evidence[i]), "labels": labels}


def _headings(rows: Any) -> list[str]:
    """What stands above the labels of each row: a text of the command line, where there are several; of a
    file the row's number, and the start of its title or text."""
    if isinstance(rows, list):
        return rows if len(rows) > 1 else [""]
    called = rows.titles or rows.texts
    if called is None:
        return [f"row {i}" for i in range(rows.n_rows)]
    return [f"row {i}: {' '.join(text[:200].split())[:80]}" for i, text in enumerate(called)]


def _write_text(out: IO[str], records: Iterator[dict[str, Any]], headings: list[str]) -> None:
    """A block a row: what it is called, and below that score and name of each label, the best first."""
    for record in records:
        if heading := headings[record["row"]]:
            out.write(f"{printable(heading)}\n")
        if record["without_evidence"]:
            out.write(
                "# nothing of this row is known to the model: its labels are guesses, by their frequency\n"
            )
        out.writelines(f"{e['score']:8.3f}  {printable(e['name'])}\n" for e in record["labels"])
        if not record["labels"]:
            out.write("       -  no label\n")
