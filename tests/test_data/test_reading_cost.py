"""What readers cost: streams that follow one another, and work that grows with the file and no faster."""

from __future__ import annotations

import bz2
import gzip
import lzma
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from metarank import data
from metarank.data.columns import read_columns
from metarank.data.compressed import decompressed

ARFF = "@relation 'toy -C 1'\n@attribute label {0,1}\n"


def test_extreme_sizes_are_read():
    for text in (b"1 500000 3000000\n0 1:1\n", b"0 499999:1\n"):
        X, _ = data.parse_xc(text)
        assert X.shape == (1, 500_000)
    assert data.parse_xc(b"1 5 100000000\n0 1:1\n")[1].shape[1] == 100_000_000
    assert data.parse_xc(b"0 99999999:1\n")[0].shape[1] == 100_000_000
    with pytest.raises(ValueError, match="the header has 5"):
        data.parse_xc(b"1 2 5\n0 1:1\n", n_labels=4)
    with pytest.raises(ValueError, match="sizes must be below 2"):
        data.parse_xc(b"1 " + b"9" * 30 + b" 5\n")


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_streams_follow_one_another(compress):
    rng = np.random.default_rng(0)
    noise = rng.bytes(300_000)
    parts = [b"2 3 2\n", b"", noise, b"0 1:1\n", b""]
    assert decompressed(b"".join(map(compress, parts)), "x") == b"".join(parts)
    with pytest.raises(ValueError, match="x: damaged file"):
        decompressed(compress(noise)[:-5], "x")


def arff(attribute: str, n: int, rows: str) -> bytes:
    return (ARFF + "".join(attribute % i for i in range(n)) + "@data\n" + rows).encode()


# What is made of a number of parts.
LONG = {
    "streams.xz": lambda n: lzma.compress(b"") * n,
    "streams.bz2": lambda n: bz2.compress(b"") * n,
    "columns.csv": lambda n: (",".join(f"c{i}" for i in range(n)) + "\n" + "1," * (n - 1) + "1\n").encode(),
    "escapes.arff": lambda n: arff("@attribute a%d {x}\n", 1, "1,'" + "\\'" * n),
    "values.arff": lambda n: (
        ARFF
        + f"@attribute a {{{','.join(f'v{i}' for i in range(n))}}}\n@data\n"
        + "".join(f"1,v{i}\n" for i in range(n))
    ).encode(),
}
READERS = {".csv": read_columns}


@pytest.mark.parametrize("name", LONG)
def test_work_grows_with_the_file(tmp_path, name):
    """What took minutes where all parts were gone through for each takes seconds of a processor."""
    (tmp_path / name).write_bytes(LONG[name](60_000))
    start = time.process_time()
    with suppress(ValueError):
        READERS.get(Path(name).suffix, data.load)(tmp_path / name)
    assert time.process_time() - start < 20


def test_sparse_rows_cost_what_they_hold(tmp_path):
    """Not what they leave out."""
    path = tmp_path / "a.arff"
    path.write_bytes(arff("@attribute a%d {0,1}\n", 4000, "{}\n" * 20_000 + "{3 1}\n"))
    found = data.load(path)
    assert (found.n_rows, found.X.nnz) == (20_001, 1)


def test_a_message_names_some_columns_only(tmp_path):
    row = ",".join(f"c{i}" for i in range(1000)) + "\n"
    (tmp_path / "a.csv").write_text(row * 2)
    with pytest.raises(ValueError, match="and 988 more") as caught:
        data.load(tmp_path / "a.csv")
    assert len(str(caught.value)) < 1000
    with pytest.raises(ValueError, match="and 988 more"):
        data.load(tmp_path / "a.csv", text_column="no")
