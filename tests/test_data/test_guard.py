"""Small files that stand for large ones: refused before they are decoded, by one rule for every reader.

Each bomb is read where memory is bounded, so that a reader that begins to decode it fails.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import multiprocessing
import re
import resource
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.readers import CORPUS

from metarank import data
from metarank.data.columns import read_columns
from metarank.data.guard import LEAST_FEATURES, LEAST_LABELS, TABLE_LEAST, TEXT_LEAST
from metarank.data.search_filters import read_attribute_values
from metarank.data.xc import decompressed, has_header

ARFF = "@relation 'toy -C 1'\n@attribute label {0,1}\n"


def parquet_of(*tables, **options) -> bytes:
    """A Parquet file with a row group a table."""
    pq = pytest.importorskip("pyarrow.parquet")
    out = io.BytesIO()
    with pq.ParquetWriter(out, tables[0].schema, **options) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=max(1, table.num_rows))
    return out.getvalue()


def zeros_of_parquet() -> bytes:
    """One run a row group."""
    pa = pytest.importorskip("pyarrow")
    return parquet_of(*[pa.table({"x": np.zeros(1_000_000), "text": pa.nulls(1_000_000, pa.string())})] * 5)


def repeated_text(in_list: bool) -> bytes:
    """A text of 100 KB, 10,000 times, written once."""
    pa = pytest.importorskip("pyarrow")
    array = pa.DictionaryArray.from_arrays(np.zeros(10_000, np.int32), ["y" * 100_000])
    if in_list:
        array = pa.ListArray.from_arrays(pa.array([0, 10_000], pa.int32()), array)
    return parquet_of(pa.table({"text": ["a"] if in_list else array, "labels": array}), store_schema=False)


def texts_that_share() -> bytes:
    """Each text is all of the one before."""
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"text": ["y" * 100_000] * 2_700})
    options = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
    return parquet_of(table, **options)


def list_of_zeros() -> bytes:
    pa = pytest.importorskip("pyarrow")
    values = pa.array(np.zeros(5_000_000, np.int8))
    return parquet_of(pa.table({"x": [1.0], "labels": pa.ListArray.from_arrays([0, 5_000_000], values)}))


# By name of the file: what makes it, and what it is refused for.
BOMBS = {
    "streams.txt.xz": (lambda: lzma.compress(bytes(16 << 20), preset=0) * 40, "100 times its"),
    "zeros.txt.gz": (lambda: gzip.compress(bytes(4 << 20)) * 25, "100 times its"),
    "zeros.csv.bz2": (lambda: bz2.compress(bytes(4 << 20)) * 25, "100 times its"),
    "labels.txt": (lambda: b"1 5 100000000\n0 1:1\n", "100000000 labels, more than 4194304 in 20 bytes"),
    "features.txt": (
        lambda: b"1 2000000000 5\n0 1:1\n",
        "2000000000 features, more than 16777216 in 21 bytes",
    ),
    "features.svm": (lambda: b"0 2000000000:1\n", "2000000001 features, more than 16777216 in 15 bytes"),
    "digits.txt": (lambda: b"1 " + b"9" * 5000 + b" 5\n", "sizes must be below 2"),
    "zeros.parquet": (zeros_of_parquet, "stand for values of"),
    "text.parquet": (lambda: repeated_text(in_list=False), "stand for values of"),
    "texts.parquet": (lambda: repeated_text(in_list=True), "stand for values of"),
    "shared.parquet": (texts_that_share, "stand for values of"),
    "list.parquet": (list_of_zeros, "stand for values of"),
    "omitted.arff": (
        lambda: (
            ARFF + "".join(f"@attribute a{i} {{x,y}}\n" for i in range(8000)) + "@data\n" + "{}\n" * 2000
        ).encode(),
        "stand for values of",
    ),
}


def bounded(read: Callable[[Path], Any], path: Path, memory: int, seconds: int) -> str:
    """What comes of reading a file with so much memory beyond what there is, and so much processor time."""
    with open("/proc/self/statm") as f:
        taken = int(f.read().split()[0]) * resource.getpagesize()
    spent = resource.getrusage(resource.RUSAGE_SELF)
    for what, most in (
        (resource.RLIMIT_CPU, int(spent.ru_utime + spent.ru_stime) + seconds),
        (resource.RLIMIT_AS, taken + memory),
    ):
        resource.setrlimit(what, (most, resource.getrlimit(what)[1]))
    try:
        found = read(path)
        return f"read: {type(found).__name__}"
    except ValueError as error:
        return f"ValueError: {error}"
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.getrlimit(resource.RLIMIT_AS)[1],) * 2)


def read_partitions(path: Path) -> Any:
    from metarank.distributed import read

    return read(str(path)).collect()


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """`bounded` in a process of its own, which has imported what readers need."""
    pa = pytest.importorskip("pyarrow")
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory is bounded as Linux does")
    path = tmp_path_factory.mktemp("warm") / "a.parquet"
    path.write_bytes(parquet_of(pa.table({"x": [1.0, 2.0], "labels": ["a", "b"]})))
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        for read in (data.load, read_columns):
            pool.submit(read, path).result()

        def ask(read, path, memory=3 << 28, seconds=20):
            return pool.submit(bounded, read, path, memory, seconds).result()

        yield ask


@pytest.mark.check_beyond(4)
@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_is_no_large_one(tmp_path, outcome, name):
    make, match = BOMBS[name]
    path = tmp_path / name
    path.write_bytes(make())
    assert path.stat().st_size < 1 << 20
    readers = [data.load, *([read_columns] if name in ("zeros.parquet", "zeros.csv.bz2") else [])]
    for read in readers:
        said = outcome(read, path)
        assert said.startswith(f"ValueError: {path}: "), said
        assert match in said
        assert "\n" not in said


@pytest.mark.parametrize(
    "name", ["labels.txt", "features.txt", "zeros.parquet", "text.parquet", "rows.txt.xz"]
)
def test_parts_of_files_are_held_to_the_same_rule(tmp_path, outcome, name):
    pytest.importorskip("metarank.distributed")
    if name == "rows.txt.xz":
        content, match = lzma.compress(b"1 2 2\n") + BOMBS["streams.txt.xz"][0](), "100 times its"
    else:
        content, match = BOMBS[name][0](), BOMBS[name][1]
    (tmp_path / name).write_bytes(content)
    said = outcome(read_partitions, tmp_path / name, memory=1 << 30)
    assert said.startswith("ValueError: file://"), said
    assert match in said


def test_a_hole_is_not_read(tmp_path):
    """Eight terabytes would otherwise be asked for at once."""
    for name in ("train.txt", "train.csv", "labels.txt"):
        with open(tmp_path / name, "wb") as f:
            f.write(b"1 2 2\n")
            try:
                f.truncate(1 << 43)
            except OSError:
                pytest.skip("the file system has no such files")
        with pytest.raises(ValueError, match=re.escape(f"{tmp_path / name}: of its 8796093022208 bytes")):
            data.load(tmp_path / name)
    (tmp_path / "train.txt").write_text("1 2 2\n0 1:1\n")
    with pytest.raises(ValueError, match=r"labels\.txt: of its 8796093022208 bytes"):
        data.load(tmp_path / "train.txt")


# --- what is ordinary passes -------------------------------------------------------


def test_extreme_sizes_are_read():
    for text in (b"1 500000 3000000\n0 1:1\n", b"0 499999:1\n"):
        X, _ = data.parse_xc(text)
        assert X.shape == (1, 500_000)
    assert data.parse_xc(b"1 5 100000000\n0 1:1\n", n_labels=100_000_000)[1].shape[1] == 100_000_000
    assert data.parse_xc(b"0 99999999:1\n", n_features=100_000_000)[0].shape[1] == 100_000_000
    text = b"1 2 %d\n0 1:1\n#" % (LEAST_LABELS + 1)
    with pytest.raises(ValueError, match="the header tells of 4194305 labels"):
        data.parse_xc(text)
    with pytest.raises(ValueError, match="the header says 5"):
        data.parse_xc(b"1 2 5\n0 1:1\n", n_labels=4)
    assert LEAST_FEATURES > 500_000


def test_what_compresses_well_is_read(tmp_path):
    text = b"0 1:1\n" * 300_000
    for name, compress in (("a.gz", gzip.compress), ("a.xz", lzma.compress), ("a.bz2", bz2.compress)):
        (tmp_path / name).write_bytes(compress(text))
        assert len(text) > 100 * (tmp_path / name).stat().st_size
        assert len(text) < TEXT_LEAST
        assert data.load(tmp_path / name).n_rows == 300_000


def test_tables_that_compress_well_are_read(tmp_path):
    """Indicators of labels, nearly all 0; and texts that repeat, too many if each were the longest."""
    pa = pytest.importorskip("pyarrow")
    n = 20_000
    indicators = {f"label {j}": np.arange(n) % 500 == j for j in range(20)}
    texts = ["a text that is long " * 100, *(f"text {i % 500}" for i in range(n - 1))]
    lists = [["a label", "b"[: i % 2]] for i in range(n)]
    table = pa.table({"text": texts, "labels": lists, "kind": pa.array(texts).dictionary_encode()})
    for options in ({}, {"use_dictionary": False, "column_encoding": {"text": "DELTA_BYTE_ARRAY"}}):
        chosen = table if not options else table.select(["text"])
        (tmp_path / "texts.parquet").write_bytes(parquet_of(chosen, chosen, **options))
        found = data.load(tmp_path / "texts.parquet")
        assert found.texts == texts * 2
    (tmp_path / "i.parquet").write_bytes(parquet_of(pa.table(indicators)))
    found = data.read_parquet(tmp_path / "i.parquet", label_columns=list(indicators), text_column=[])
    assert found.Y.nnz == n // 500 * 20
    assert n * 60_000 > TABLE_LEAST


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_streams_follow_one_another(compress, tmp_path):
    rng = np.random.default_rng(0)
    noise = rng.bytes(300_000)
    parts = [b"2 3 2\n", b"", noise, b"0 1:1\n", b""]
    assert decompressed(b"".join(map(compress, parts)) + bytes(8), "x") == b"".join(parts)
    (tmp_path / "x").write_bytes(b"".join(map(compress, parts)))
    assert has_header(tmp_path / "x")
    for damaged in (
        compress(noise)[:-5],
        compress(noise) + compress(b"x")[:10],
        compress(b"x") + b"garbage" * 9,
    ):
        with pytest.raises(ValueError, match="x: damaged compressed file"):
            decompressed(damaged, "x")


# --- nothing is quadratic ------------------------------------------------------------


def arff(attribute: str, n: int, rows: str) -> bytes:
    return (ARFF + "".join(attribute % i for i in range(n)) + "@data\n" + rows).encode()


# What is made of a number of parts.
LONG = {
    "streams.xz": lambda n: lzma.compress(b"") * n,
    "streams.bz2": lambda n: bz2.compress(b"") * n,
    "columns.csv": lambda n: (",".join(f"c{i}" for i in range(n)) + "\n" + "1," * (n - 1) + "1\n").encode(),
    "twice.csv": lambda n: (",".join(f"c{i}" for i in range(n)) + f",c{n - 1}\n").encode(),
    "keys.jsonl": lambda n: ("{" + ",".join(f'"k{i}":1' for i in range(n)) + f',"k{n - 1}":1}}').encode(),
    "escapes.arff": lambda n: arff("@attribute a%d {x}\n", 1, "1,'" + "\\'" * n),
    "blanks.arff": lambda n: arff("@attribute a%d {x}\n", 1, "1,'a" + " " * n + "x"),
    "quotes.arff": lambda n: arff("@attribute a%d {x}\n", 1, "1," + "'a'" * n),
    "values.arff": lambda n: (
        ARFF
        + f"@attribute a {{{','.join(f'v{i}' for i in range(n))}}}\n@data\n"
        + "".join(f"1,v{i}\n" for i in range(n))
    ).encode(),
}
LONGER = {"streams.xz": 400_000, "escapes.arff": 1_000_000}
READERS = {".csv": read_columns, ".jsonl": read_attribute_values}


@pytest.mark.parametrize("name", LONG)
def test_work_grows_with_the_file(tmp_path, outcome, name):
    """What took minutes where all parts were gone through for each has twenty seconds of a processor."""
    (tmp_path / name).write_bytes(LONG[name](LONGER.get(name, 60_000)))
    said = outcome(READERS.get(Path(name).suffix, data.load), tmp_path / name)
    assert said.startswith(("ValueError: ", "read: ")), said


def test_sparse_rows_cost_what_they_hold(tmp_path, outcome):
    """Not what they leave out."""
    path = tmp_path / "a.arff"
    path.write_bytes(arff("@attribute a%d {0,1}\n", 4000, "{}\n" * 20_000 + "{3 1}\n"))
    assert outcome(data.load, path) == "read: Dataset"
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


def test_statistics_that_fit_nothing_do_not_end_the_process():
    """Arrow's own view of a column's metadata does, where they are damaged."""
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"statistics\.parquet: "):
        data.load(CORPUS / "readers" / "parquet" / "statistics.parquet")
