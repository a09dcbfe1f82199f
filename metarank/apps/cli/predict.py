"""Rank the labels of every row of a file, or of texts typed on the command line."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from metarank._util.printable import printable
from metarank.apps.cli._common import (
    add_model_options,
    add_rows_options,
    check_rows,
    completed,
    load_model,
    read_dataset,
)
from metarank.apps.cli._output import (
    ANNIF,
    ENDINGS,
    FORMATS,
    columns_of_output,
    form_of,
    opened,
    write_records,
)
from metarank.apps.cli.label_lists import FORMAT, read_label_lists
from metarank.apps.cli.pair_options import add_pair_options, check_pair_options, pairs_for

if TYPE_CHECKING:
    import scipy.sparse as sp

    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker
    from metarank.types.ranking import Ranking


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    from metarank.thresholds.set_metrics import METRICS

    add_rows_options(parser, "a text to label (may be repeated)")
    parser.add_argument(
        "--top", type=int, default=None, metavar="K", help="labels per row (default 10; with --optimize all)"
    )
    optimize = parser.add_argument(
        "--optimize",
        metavar="METRIC",
        help="keep only labels above the cut learned for METRIC: micro-f1, macro-f1, example-f1, hamming, "
        "subset-accuracy; or the labels that keep a promise, 'recall>=0.9', 'precision>=0.8' or 'fnr<=0.1'",
    )
    completed(optimize, METRICS)
    parser.add_argument(
        "--probabilities",
        action="store_true",
        help="tell the probability of each label too; it carries no lean towards rare labels",
    )
    parser.add_argument(
        "--id-column",
        metavar="NAME",
        help="column of INPUT that holds the ids of its rows, to be written beside their numbers (default: "
        'id, if INPUT is a table that has it and the model does not read it; "" for none)',
    )
    parser.add_argument(
        "--out", default="-", metavar="FILE", help=f"file to write (default: standard output): {ENDINGS}"
    )
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"format if --out has no ending: {', '.join(FORMATS)} (default txt: a block of scores and names "
        "per row); "
        "annif-tsv and annif-jsonl are those of `annif suggest` and `annif index`: URIs, names, and "
        "probabilities as scores",
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
    from metarank.data.column_names import read_elsewhere
    from metarank.model.explain import said_of_unknown_rows
    from metarank.thresholds.set_metrics import check_metric

    check_rows(args)
    check_pair_options(args)
    check_metric(args.optimize)
    form = form_of(args.out, args.format)
    if args.crlf and form.kind not in ("csv", "tsv"):
        raise ValueError(f"--crlf goes with csv and tsv, got {form.kind}")
    if args.id_column and (args.text is not None or args.input == "-"):
        raise ValueError("--id-column names a column of a file: standard input is read once, texts have none")
    with opened(args.out, form) as out:
        model = load_model(args.model, args)
        ids = None
        if args.text is not None:
            rows: Any = args.text
        else:
            with read_elsewhere([args.id_column or "id"]):
                rows = read_dataset(args.input, args, model)
            ids = _ids(args, rows, model)
        top = args.top or (10 if args.optimize is None else model.n_labels_)
        n_rows = len(args.text) if args.text is not None else rows.n_rows
        limits: dict[str, Any] = {
            name: read_label_lists(path, model.label_table_, n_rows, option=f"--{name}", one_for_all=True)
            for name, path in (("exclude", args.exclude), ("allowed", args.allowed))
            if path is not None
        }
        limits |= pairs_for(model, args, n_rows)
        ranking, probabilities, kept = model._answers(
            rows, top, args.optimize, args.probabilities or form.kind in ANNIF, None, limits
        )
        if unknown := said_of_unknown_rows(ranking.without_evidence):
            print(f"metarank: {unknown}", file=sys.stderr)
        records = _records(model, ranking, kept, probabilities, ids)
        if form.kind in ANNIF:
            _write_annif(out, form.kind, records, model, rows)
        elif form.kind == "txt":
            _write_text(out, records, _headings(rows, ids))
        else:
            names = columns_of_output(ids is not None, args.probabilities)
            write_records(out, form, records, names, crlf=args.crlf)


def _ids(args: argparse.Namespace, dataset: Dataset, model: MetaRanker) -> list[Any] | None:
    """The ids of the rows of INPUT, of the column that is asked for, or of "id" if nothing else reads it."""
    from metarank.data.column_names import check_among
    from metarank.data.label_files import columns_of
    from metarank.types.blocks import Blocks

    name = "id" if args.id_column is None else args.id_column
    asked = args.id_column is not None
    if not name or (not asked and not _is_table(args.input)):
        return None
    table = columns_of(args.input)
    if asked:
        check_among([name], table, "--id-column")
    read = {args.labels_column, *(dataset.feature_names or ()), *(dataset.text_columns or ())}
    if isinstance(dataset.X, Blocks):
        read.update(column for block in dataset.X for column in dataset.X.columns.get(block, [block]))
    if name not in table or (not asked and name in read):
        return None
    ids = table[name]
    if len(ids) != dataset.n_rows:
        raise ValueError(f"--id-column must have a value a row, {dataset.n_rows}, got {len(ids)}")
    whole = all(isinstance(i, int) and not isinstance(i, bool) for i in ids)
    return ids if whole else [None if i is None or i == "" else str(i) for i in ids]


def _is_table(path: str) -> bool:
    """Whether a file is called as tables are."""
    from metarank.data.readers import TABLES
    from metarank.data.xc import COMPRESSED

    stem, ending = os.path.splitext(path.lower())
    ending = os.path.splitext(stem)[1] if ending in COMPRESSED else ending
    return ending in (*TABLES, ".parquet")


def _records(
    model: MetaRanker,
    ranking: Ranking,
    kept: sp.csr_matrix | None,
    probabilities: sp.csr_matrix | None,
    ids: list[Any] | None,
) -> Iterator[dict[str, Any]]:
    """A record for each row: the labels listed, of those above the cut where there is one."""
    for i, pairs in enumerate(ranking):
        above = None if kept is None else _of_row(kept, i)
        known = None if probabilities is None else _of_row(probabilities, i)
        labels = []
        for label, score in pairs:
            if above is None or label in above:
                entry = {"label": label, "name": model.label_table_.shown(label), "score": score}
                labels.append(entry if known is None else entry | {"probability": known.get(label, 0.0)})
        called = {} if ids is None else {"id": ids[i]}
        yield {"row": i, **called, "without_evidence": bool(ranking.without_evidence[i]), "labels": labels}


def _of_row(matrix: sp.csr_matrix, row: int) -> dict[int, float]:
    """The stored entries of a row by label."""
    own = slice(matrix.indptr[row], matrix.indptr[row + 1])
    return dict(zip(matrix.indices[own].tolist(), matrix.data[own].tolist()))


def _headings(rows: Any, ids: list[Any] | None) -> list[str]:
    """What stands above the labels of each row: a text of the command line, where there are several; of a
    file the row's number, its id, and the start of its title or text."""
    if isinstance(rows, list):
        return rows if len(rows) > 1 else [""]
    ids = [None] * rows.n_rows if ids is None else ids
    numbers = [f"row {i}" + ("" if own is None else f" ({own})") for i, own in enumerate(ids)]
    called = rows.titles or rows.texts
    if called is None:
        return numbers
    return [f"{n}: {' '.join(text[:200].split())[:80]}" for n, text in zip(numbers, called)]


def _write_text(out: IO[str], records: Iterator[dict[str, Any]], headings: list[str]) -> None:
    """A block a row: what it is called, and below that score and name of each label, the best first."""
    for record in records:
        if heading := headings[record["row"]]:
            out.write(f"{printable(heading)}\n")
        if record["without_evidence"]:
            out.write(
                "# nothing of this row is known to the model: its labels are guesses, by their frequency\n"
            )
        for e in record["labels"]:
            share = f"  {100 * e['probability']:5.1f} %" if "probability" in e else ""
            out.write(f"{e['score']:8.3f}{share}  {printable(e['name'])}\n")
        if not record["labels"]:
            out.write("       -  no label\n")


def _write_annif(
    out: IO[str], kind: str, records: Iterator[dict[str, Any]], model: MetaRanker, rows: Any
) -> None:
    """What Annif writes: `annif suggest` of several files, or `annif index` of a file of documents."""
    import numpy as np

    from metarank.apps.annif.suggestions import scores_in_order

    table = model.labels_
    texts = rows if isinstance(rows, list) else rows.texts
    n_rows = len(rows) if isinstance(rows, list) else rows.n_rows
    for record in records:
        row = record["row"]
        found = []
        # As the service and the backend have them: scores fall, and there are none of an unknown row.
        listed = [] if record["without_evidence"] else record["labels"]
        scores = scores_in_order(np.array([entry["probability"] for entry in listed]))
        for entry, score in zip(listed, scores.tolist()):
            label = entry["label"]
            uri = entry["name"] if table is None else table.ids[label]
            name = entry["name"] if table is None else table.names[label] or None
            found.append({"uri": uri, "label": name, "notation": None, "score": score})
        if kind == "annif-jsonl":
            document = {} if texts is None else {"text": texts[row]}
            out.write(f"{json.dumps(document | {'results': found})}\n")
            continue
        if n_rows > 1:
            out.write(f"Suggestions for row {row}\n")
        for one in found:
            out.write(f"<{one['uri']}>\t{printable(one['label'] or '')}\t{one['score']:.04f}\n")
