"""Files of predictions: the ending of the name says what is written, and how it is packed."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

from metarank._util.printable import printable
from metarank.apps.cli._common import writing
from metarank.apps.cli._terminal import unguarded

FORMATS = ("txt", "csv", "tsv", "json", "jsonl", "parquet", "annif-tsv", "annif-jsonl")
ANNIF = {"annif-tsv": "tsv", "annif-jsonl": "jsonl"}  # and the endings of their files
_PACKED = (".gz", ".xz")
_OWN = [f".{name}" for name in FORMATS if name not in ANNIF]
ENDINGS = f"{', '.join(_OWN)}, all but the last also with .gz or .xz after it"


def columns_of_output(with_ids: bool, with_probabilities: bool) -> tuple[str, ...]:
    """The columns of tables of predictions."""
    ids, probability = ("id",) * with_ids, ("probability",) * with_probabilities
    return ("row", *ids, "rank", "label", "name", "score", *probability, "without_evidence")


class OutputForm(NamedTuple):
    """A format of `FORMATS`, and "", ".gz" or ".xz"."""

    kind: str
    packed: str = ""


def form_of(path: str, kind: str | None) -> OutputForm:
    """What is to be written to `--out PATH` with `--format KIND`, before any work.

    A name without an ending, a device and standard output ("-") take any format, text by default.

    Raises
    ------
    ValueError
        If the ending is unknown or says something else than `kind`, or Parquet is to go to standard output.

    Examples
    --------
    >>> form_of("top.csv.gz", None)
    OutputForm(kind='csv', packed='.gz')
    >>> form_of("-", "jsonl")
    OutputForm(kind='jsonl', packed='')
    """
    name = "" if path == "-" or _is_device(path) else os.path.basename(path)
    stem, packed = os.path.splitext(name)
    if packed.lower() not in _PACKED:
        stem, packed = name, ""
    ending = os.path.splitext(stem)[1]
    found = ending[1:].lower() or (None if not packed else "")
    if found is not None and (found not in FORMATS or found in ANNIF or (found == "parquet" and packed)):
        raise ValueError(f"--out must end in one of {ENDINGS}, got {path!r}")
    if kind in ANNIF and found in (None, ANNIF[kind]):
        return OutputForm(kind, packed.lower())
    if found is not None and kind not in (None, found):
        raise ValueError(f"--format {kind} contradicts --out {path}: leave one out")
    kind = found or kind or "txt"
    if kind == "parquet":
        if path == "-":
            raise ValueError("--format parquet goes to a file: name one with --out")
        from metarank._util.extra import require_extra

        require_extra("data", "pyarrow")
    return OutputForm(kind, packed.lower())


def _is_device(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def opened(path: str, form: OutputForm) -> Iterator[IO]:
    """The file, of text or for Parquet of bytes, packed as its name says; whole or not at all.

    The same content gives the same bytes.
    """
    if not form.packed:
        with writing(path, "wb" if form.kind == "parquet" else "w") as f:
            yield f
        return
    with writing(path, "wb") as f:
        packer: Any = lzma.LZMAFile(f, "wb") if form.packed == ".xz" else None  # noqa: SIM115
        packer = packer or gzip.GzipFile(filename="", mode="wb", fileobj=f, mtime=0)  # no name, no date
        with packer, io.TextIOWrapper(packer, encoding="utf-8", newline="\n") as text:
            yield text


def write_records(
    out: IO, form: OutputForm, records: Iterable[dict[str, Any]], names: Sequence[str], *, crlf: bool = False
) -> None:
    """Records of rows in any format but text.

    ``{"row": i, "without_evidence": bool, "labels": [{"label": id, "name": name, "score": score}, ...]}``.

    A record may have an "id", a label a "probability": `names` are the columns, `columns_of_output`. csv, tsv
    and Parquet hold a line for each label, with its rank from 1; json is one list, jsonl a record a
    line. Lines end with "\\n"; with `crlf` those of csv and tsv with "\\r\\n".
    """
    if form.kind == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {"row": pa.int64(), "rank": pa.int32(), "label": pa.int32(), "name": pa.string()}
        types |= {"score": pa.float32(), "probability": pa.float32(), "without_evidence": pa.bool_()}
        columns = list(zip(*_lines(records, names))) or [()] * len(names)
        arrays = [pa.array(column, types.get(name)) for name, column in zip(names, columns)]
        pq.write_table(pa.table(arrays, names=list(names)), out)
    elif form.kind in ("csv", "tsv"):
        ends, sign = ("\r\n" if crlf else "\n"), ("\t" if form.kind == "tsv" else ",")
        plain = out.isatty()
        out = unguarded(out)  # names are made printable here, line ends are ours
        writer = csv.writer(out, delimiter=sign, lineterminator=ends)
        writer.writerow(names)
        shown: dict[str, Callable[[Any], Any]] = {"without_evidence": int}
        shown |= dict.fromkeys(("score", "probability"), "{:.6g}".format)
        forms = [shown.get(name, _cell) for name in names]
        writer.writerows([form(v) for form, v in zip(forms, line)] for line in _lines(records, names, plain))
    else:
        texts = (printable(json.dumps(record, ensure_ascii=False)) for record in records)
        start, between, end = ("", "\n", "\n") if form.kind == "jsonl" else ("[\n", ",\n", "\n]\n")
        out.write(start)
        for i, text in enumerate(texts):
            out.write(f"{between if i else ''}{text}")
        out.write(end)


def _cell(value: Any) -> Any:
    return value


def _lines(
    records: Iterable[dict[str, Any]], names: Sequence[str], plain: bool = False
) -> Iterator[list[Any]]:
    """The columns `names` of each pair of a row and a label; `plain` for a terminal."""
    for record in records:
        for rank, entry in enumerate(record["labels"], 1):
            line = {**record, **entry, "rank": rank}
            values = [line[name] for name in names]
            yield [printable(v) if plain and isinstance(v, str) else v for v in values]
