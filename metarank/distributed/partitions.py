"""`read`: Parquet and repository text on any file system, in parts that workers read by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import fsspec
import numpy as np
import scipy.sparse as sp
from distributed import Client

from metarank.data.compressed import PARQUET_MAGIC, decompressed, opened
from metarank.data.dataset import Dataset, under_names
from metarank.data.frames import Roles
from metarank.data.parquet import dataset_of_arrow
from metarank.data.separators import AUTO, described
from metarank.data.tables import naming
from metarank.data.xc import HEADER, parse_xc
from metarank.types.arrays import stacked


@dataclass(frozen=True)
class Part:
    """Some rows of a file.

    Parameters
    ----------
    url : str
    start, stop : int
        Row groups of Parquet; bytes of text, the header left out. All of a compressed text is one part.
    header : (int, int) or None
        D and L of repository text; None for Parquet.
    compressed : bool
    roles : Roles
        Which columns of Parquet are what.
    first_row, n_rows : int
    """

    url: str
    start: int
    stop: int
    header: tuple[int, int] | None
    compressed: bool
    roles: Roles
    first_row: int = 0
    n_rows: int = -1

    def load(self) -> Dataset:
        """The rows.

        Raises
        ------
        ValueError
            If the content is malformed; the message names the file.
        """
        if self.header is None:
            with naming(self.url):
                return dataset_of_arrow(self.table(), self.roles, "", self.url, tell=self.first_row == 0)
        D, L = self.header
        body = self.text()
        try:
            head = b"%d %d %d\n" % (_lines(body), D, L)
            X, Y = parse_xc(head + body, n_features=D, n_labels=L, n_jobs=1)
        except ValueError as error:
            raise ValueError(f"{self.url}, in the part from byte {self.start} on: {error}") from None
        return Dataset(X, Y)

    def table(self) -> Any:
        """The row groups as an Arrow table."""
        import pyarrow.parquet as pq

        with fsspec.open(self.url, "rb") as f:
            return pq.ParquetFile(f).read_row_groups(range(self.start, self.stop))

    def text(self) -> bytes:
        """The lines, decompressed."""
        with fsspec.open(self.url, "rb") as f:
            if not self.compressed:
                f.seek(self.start)
                return bytes(f.read(self.stop - self.start))
            return decompressed(f.read(), self.url).partition(b"\n")[2]


def count_rows(part: Part) -> int:
    """Rows of a part."""
    return part.n_rows if part.n_rows >= 0 else _lines(part.text())


@dataclass(frozen=True)
class Partitions:
    """The rows of one or several files, part by part.

    Parameters
    ----------
    parts : list of Part
    """

    parts: list[Part]

    @property
    def n_rows(self) -> int:
        return sum(part.n_rows for part in self.parts)

    def collect(self, client: Client | None = None) -> Dataset:
        """All rows as one `Dataset` in this process, as a fit needs them; a client has workers read them."""
        if client is None:
            loaded = [part.load() for part in self.parts]
        else:
            loaded = client.gather(client.map(Part.load, self.parts, pure=False))
        return _joined(loaded)


def read(
    urls: str | Sequence[str],
    *,
    client: Client | None = None,
    block_bytes: int = 64 * 2**20,
    text_column: str | Sequence[str] | None = None,
    labels_column: str | None = None,
    label_columns: Sequence[str] | None = None,
    feature_columns: Sequence[str] | None = None,
    label_separator: str | None = AUTO,
) -> Partitions:
    """Partitions of Parquet files or of text of the extreme classification repository.

    Parameters
    ----------
    urls : str or list of str
        Paths or URLs of any file system that fsspec knows ("s3://bucket/train-*.parquet"), with wildcards.
        Files follow one another in the order given, those of a wildcard by name; all of one kind.
    client : distributed.Client, optional
        Has workers count the rows of text; without it this process does.
    block_bytes : int
        Bytes of text to a part, up to the end of a line. A row group of Parquet is a part.
    text_column, labels_column, label_columns, feature_columns : as in `metarank.data.from_frame`
    label_separator : as in `metarank.data.from_frame`
        Parts are read separately: if "auto" would choose different separators, `collect` requires one.

    Raises
    ------
    FileNotFoundError, ValueError
        If there are no files, a file is neither Parquet nor text with the header `N D L`, or headers
        disagree.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.txt"
    >>> _ = path.write_text("3 3 2\\n1 0:0.5 2:1\\n0,1 1:2\\n 2:1\\n")
    >>> found = read(str(path), block_bytes=12)
    >>> [(part.first_row, part.n_rows) for part in found.parts]
    [(0, 1), (1, 2)]
    >>> found.collect().Y.toarray().tolist()
    [[0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    """
    if block_bytes < 1:
        raise ValueError(f"block_bytes must be positive, got {block_bytes}")
    roles = Roles(label_columns, labels_column, text_column, feature_columns, label_separator)
    parts: list[Part] = []
    expected: list[int] = []
    for url in [urls] if isinstance(urls, str) else list(urls):
        fs, _, paths = fsspec.get_fs_token_paths(url, mode="rb")
        if not paths or not all(fs.exists(path) for path in paths):
            raise FileNotFoundError(f"no file at {url!r}")
        for path in sorted(paths):
            parts_of_file, n_rows = _parts_of(fs, fs.unstrip_protocol(path), path, block_bytes, roles)
            parts += parts_of_file
            expected.append(n_rows)
    if len({part.header for part in parts}) > 1:
        raise ValueError(
            f"files must agree in features and labels, got {sorted({str(p.header) for p in parts})}"
        )
    if client is not None:
        counts = client.gather(client.map(count_rows, parts, pure=False))
    else:
        counts = [count_rows(part) for part in parts]
    if sum(counts) != sum(expected):
        raise ValueError(f"the headers have {sum(expected)} rows, found {sum(counts)}")
    first = np.concatenate([[0], np.cumsum(counts)])
    numbered = [replace(p, first_row=int(i), n_rows=int(n)) for p, i, n in zip(parts, first, counts)]
    return Partitions([part for part in numbered if part.n_rows > 0])


def _parts_of(fs: Any, url: str, path: str, block_bytes: int, roles: Roles) -> tuple[list[Part], int]:
    with fs.open(path, "rb") as f:
        head = f.read(8)
        if head.startswith(PARQUET_MAGIC):
            import pyarrow.parquet as pq

            with naming(url):
                about = pq.ParquetFile(f).metadata
            groups = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
            parts = [Part(url, i, i + 1, None, False, roles, n_rows=n) for i, n in enumerate(groups)]
            return parts, sum(groups)
        f.seek(0)
        stream = opened(f)
        match = HEADER.match(stream.read(200))
        if match is None:
            raise ValueError(f"{url}: must be Parquet, or text with the header line 'N D L'")
        n_rows, D, L = map(int, match.groups())
        if stream is not f:
            return [Part(url, 0, 0, (D, L), True, roles)], n_rows
        bounds = list(_line_bounds(f, match.end(), fs.size(path), block_bytes))
    return [Part(url, a, b, (D, L), False, roles) for a, b in pairwise(bounds)], n_rows


def _line_bounds(f: Any, start: int, size: int, block_bytes: int) -> Iterator[int]:
    """Ascending positions from start to size, each the beginning of a line."""
    yield start
    while start + block_bytes < size:
        f.seek(start + block_bytes - 1)
        f.readline()
        start = f.tell()
        if start < size:
            yield start
    yield size


def _lines(text: bytes) -> int:
    return text.count(b"\n") + bool(text and not text.endswith(b"\n"))


def _joined(parts: list[Dataset]) -> Dataset:
    """The rows of several data sets of the same columns; labels are put under common names."""
    first = parts[0]
    separators = list(dict.fromkeys(p.label_separator for p in parts if p.label_separator != AUTO))
    if len(separators) > 1:
        raise ValueError(
            f"label_separator must be given, since parts differ: {' or '.join(map(described, separators))}"
        )
    if any(part.label_names != first.label_names for part in parts):
        if any(part.label_names is None for part in parts):
            raise ValueError("all parts must name their labels, or none")
        are_ids = all(part.label_names_are_ids for part in parts)
        names = sorted(
            {name for part in parts for name in part.label_names or ()}, key=int if are_ids else None
        )
        labels = [under_names(part.Y, part.label_names, names) for part in parts]
    else:
        names, labels = first.label_names, [part.Y for part in parts]  # type: ignore[assignment]
    width = max(Y.shape[1] for Y in labels)
    same = [sp.csr_matrix((Y.data, Y.indices, Y.indptr), (Y.shape[0], width)) for Y in labels]
    Y = sp.vstack(same, "csr")
    X = None if first.X is None else stacked([part.X for part in parts])
    texts = None if first.texts is None else [text for part in parts for text in part.texts or ()]
    titles = None if first.titles is None else [title for part in parts for title in part.titles or ()]
    return Dataset(
        X,
        Y,
        label_names=names,
        label_texts=first.label_texts if names == first.label_names else None,
        feature_names=first.feature_names,
        texts=texts,
        titles=titles,
        name=first.name,
        label_separator=separators[0] if separators else AUTO,
        label_names_are_ids=all(part.label_names_are_ids for part in parts),
    )
