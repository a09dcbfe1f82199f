"""The XC text parser: agreement with a slow twin, every malformed line, independence of threads."""

import gzip
import io
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from metarank.data import Dataset, load, parse_xc, write_xc


def parse_slowly(text: str):
    """The obvious reader of well-formed repository text."""
    lines = text.split("\n")
    n, d, n_labels = map(int, lines[0].split())
    X, Y = np.zeros((n, d), np.float32), np.zeros((n, n_labels), np.float32)
    for i, line in enumerate(lines[1 : n + 1]):
        tokens = line.split()
        if tokens and not line[0].isspace():
            for label in tokens.pop(0).split(","):
                j, _, grade = label.partition(":")
                Y[i, int(j)] = np.float32(grade or 1)
        for token in tokens:
            j, _, value = token.partition(":")
            X[i, int(j)] += np.float32(value)
    return X, Y


@st.composite
def files(draw):
    n, d, n_labels = draw(st.integers(0, 6)), draw(st.integers(1, 8)), draw(st.integers(1, 5))
    gap = st.sampled_from([" ", "  ", "\t", " \t "])
    value = st.floats(width=32, allow_nan=False, allow_infinity=False).map(
        lambda v: repr(v) if abs(v) < 1e16 else f"{v:.9e}"
    )
    lines = [f"{n} {d} {n_labels}"]
    for _ in range(n):
        labels = draw(st.lists(st.integers(0, n_labels - 1), unique=True))
        grades = draw(st.booleans())
        field = ",".join(f"{j}:{draw(st.integers(1, 9))}" if grades else str(j) for j in labels)
        ids = draw(st.permutations(range(d)))[: draw(st.integers(0, d))]
        pairs = "".join(f"{draw(gap)}{j}:{draw(value)}" for j in ids)
        lines.append(field + (pairs or " ") + draw(st.sampled_from(["", " "])))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return end.join(lines) + draw(st.sampled_from(["", end, end + end]))


@settings(max_examples=200, deadline=None)
@given(files())
def test_agrees_with_the_obvious_reader(text):
    X, Y = parse_xc(text.encode(), n_jobs=1)
    X_slow, Y_slow = parse_slowly(text.replace("\r\n", "\n"))
    np.testing.assert_array_equal(X.toarray(), X_slow)
    np.testing.assert_array_equal(Y.toarray(), Y_slow)
    for matrix in (X, Y):
        assert matrix.dtype == np.float32
        assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
        matrix.check_format()
        assert np.all(matrix.data != 0)


def decimals():
    """Decimals at the edges of the fast path: long, tiny, huge, halfway between two floats."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 0x7F800000, 4000, dtype=np.uint32)
    normal = rng.normal(size=2000).astype(np.float32)
    floats = np.concatenate([bits.view(np.float32), normal]).astype(np.float64)
    halfway = (floats[:2000] + np.nextafter(floats[:2000].astype(np.float32), np.float32(0))) / 2
    out = [f"{v:.9g}" for v in floats] + [f"{v:.{p}f}" for v in floats[-200:] for p in (1, 6, 12, 25)]
    out += [f"{v:.17g}" for v in halfway] + [f"{v:.60g}" for v in halfway[:300]]
    out += [
        "0." + "0" * 400 + "1",
        "1" + "0" * 30 + "e-30",
        "1e-400",
        "0e999999",
        "9007199254740993",
        "+.5",
        "5.",
    ]
    out += ["-0", "16777217", "16777217.0000000001", "16777216.9999999999", "3.4028235e38", "1E5"]
    return [*out, "1e+05"]


def test_every_decimal_is_the_nearest_float():
    texts = decimals()
    X, _ = parse_xc("".join(f" 0:{t} 1:1\n" for t in texts).encode())
    # Through exact fractions: a detour by float64 would round twice.
    expected = np.array([nearest_float32(t) for t in texts], np.float32)
    np.testing.assert_array_equal(X.toarray()[:, 0], expected)


def nearest_float32(text: str) -> np.float32:
    from fractions import Fraction

    exact = Fraction(text.rstrip(".") if text.endswith(".") else text) if "e999" not in text else Fraction(0)
    guess = np.float32(min(max(float(exact), -3.4028234e38), 3.4028234e38))
    with np.errstate(over="ignore"):
        around = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    around = [v for v in around if np.isfinite(v)]
    even = {v: int(np.float32(v).view(np.uint32)) & 1 for v in around}
    return min(around, key=lambda v: (abs(Fraction(float(v)) - exact), even[v]))


def big_text(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        ids = np.sort(rng.choice(500, 12, replace=False))
        rows.append(
            f"{i % 7},{7 + i % 5}" + "".join(f" {j}:{v:.6g}" for j, v in zip(ids, rng.normal(size=12)))
        )
    return f"{n} 500 12\n" + "\n".join(rows) + "\n"


def test_threads_do_not_matter():
    text = big_text().encode()
    assert len(text) > 2_000_000  # several blocks
    one, four = parse_xc(text, n_jobs=1), parse_xc(text, n_jobs=4)
    for a, b in zip(one, four):
        for part in ("indptr", "indices", "data"):
            assert getattr(a, part).tobytes() == getattr(b, part).tobytes()


def test_the_first_error_wins_whatever_the_threads():
    lines = big_text().split("\n")
    lines[19_000] = "1 3:x"
    lines[12_000] = "1 4:y"
    for n_jobs in (1, 4):
        with pytest.raises(ValueError, match=r"line 12001: .*'4:y'"):
            parse_xc("\n".join(lines).encode(), n_jobs=n_jobs)


def test_a_line_longer_than_a_block():
    wide = " ".join(f"{j}:1" for j in range(300_000))
    X, Y = parse_xc(f"3 300000 2\n0 {wide}\n1 5:2\n 6:3\n".encode(), n_jobs=4)
    assert np.diff(X.indptr).tolist() == [300_000, 1, 1]
    assert Y.toarray().tolist() == [[1, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("0 1:nan", "line 2: value must be a finite 32-bit number, got '1:nan'"),
        ("0 1:inf", "got '1:inf'"),
        ("0 1:1e39", "got '1:1e39'"),
        ("0 1:1e", "got '1:1e'"),
        ("0 1:1.2.3", "got '1:1.2.3'"),
        ("0 1:+-1", "got '1:\\+-1'"),
        ("0 1:2:3", "got '1:2:3'"),
        ("0 -1:2", "feature id must be a non-negative integer, got '-1:2'"),
        ("0 :2", "got ':2'"),
        ("0 4:2", "feature id must be below 4, got '4:2'"),
        ("0 99999999999999999999:2", "feature id must be below 4"),
        ("0 7", "expected id:value, got '7'"),
        ("-1 1:1", "label id must be a non-negative integer, got '-1'"),
        ("3 1:1", "label id must be below 3, got '3'"),
        ("0,,1 1:1", "label id must be a non-negative integer, got ''"),
        ("a,b 1:1", "got 'a'"),
        ("0:-1 1:1", "grade must be a finite, non-negative number, got '0:-1'"),
        ("0:nan 1:1", "grade must be a finite, non-negative number, got '0:nan'"),
        ("0:x 1:1", "got '0:x'"),
        ("\x00\xff 1:1", "got '\\?+'"),
        ("0 " + "9" * 100 + "x:1", "got '9{40}\\.\\.\\.'"),
    ],
)
def test_malformed_lines_are_named(body, message):
    with pytest.raises(ValueError, match=message):
        parse_xc(f"1 4 3\n{body}\n".encode("latin-1"))


def test_rules_of_the_format():
    text = b"6 4 3\n2,0,2 3:1 1:2 3:0.5\n\n 0:1\n1 # 2:5\n# a remark\n0 qid:7 2:1 1:0\n1:2,0:4,1:3\t0:1\n\n\n"
    X, Y = parse_xc(text)
    assert X.toarray().tolist() == [
        [0, 2, 0, 1.5],
        [0] * 4,
        [1, 0, 0, 0],
        [0] * 4,
        [0, 0, 1, 0],
        [1, 0, 0, 0],
    ]
    assert Y.toarray().tolist() == [[1, 0, 1], [0] * 3, [0] * 3, [0, 1, 0], [1, 0, 0], [4, 3, 0]]
    assert X.nnz == 5  # the zero is dropped


def test_header_must_count_the_rows():
    with pytest.raises(ValueError, match="header has 3 rows, found 2"):
        parse_xc(b"3 4 3\n0 1:1\n1 1:1")
    with pytest.raises(ValueError, match="header has 1 rows, found 2"):
        parse_xc(b"1 4 3\n0 1:1\n1 1:1\n\n")
    X, Y = parse_xc(b"0 4 3\n")
    assert (X.shape, Y.shape) == ((0, 4), (0, 3))


def test_without_header_it_is_svmlight():
    from sklearn.datasets import load_svmlight_file

    text = b"# remark\n0,2 1:0.5 4:1\n\n 0:1\n3:1 4:2\n1 2:1 # tail\n"
    X, Y = parse_xc(text)
    X_sk, labels = load_svmlight_file(io.BytesIO(text), multilabel=True, zero_based=True)
    np.testing.assert_array_equal(X.toarray(), X_sk.toarray())
    assert [np.flatnonzero(y).tolist() for y in Y.toarray()] == [[int(v) for v in row] for row in labels]
    X, Y = parse_xc(text, n_features=9, n_labels=7)
    assert (X.shape[1], Y.shape[1]) == (9, 7)
    with pytest.raises(ValueError, match="line 2: label id must be below 2, got '2'"):
        parse_xc(text, n_labels=2)


def test_one_based_ids():
    text = b"0 1:5 3:6\n"
    assert parse_xc(text)[0].toarray().tolist() == [[0, 5, 0, 6]]
    assert parse_xc(text, zero_based=False)[0].toarray().tolist() == [[5, 0, 6]]
    assert parse_xc(text, zero_based="auto")[0].toarray().tolist() == [[5, 0, 6]]
    assert parse_xc(b"0 0:5\n", zero_based="auto")[0].toarray().tolist() == [[5]]
    assert parse_xc(b"1 3 1\n0 3:6\n", zero_based="auto")[0].toarray().tolist() == [[0, 0, 6]]
    with pytest.raises(ValueError, match="line 1: feature ids start at 1, got '0:5'"):
        parse_xc(b"0 0:5\n", zero_based=False)


def random_dataset(seed=0, graded=True):
    rng = np.random.default_rng(seed)
    X = sp.random(40, 60, 0.1, "csr", dtype=np.float32, random_state=rng)
    X.data[:] = rng.integers(0, 0x7F800000, X.nnz, dtype=np.uint32).view(np.float32)
    Y = sp.random(40, 9, 0.2, "csr", dtype=np.float32, random_state=rng)
    Y.data[:] = rng.random(Y.nnz).astype(np.float32) if graded else 1
    return Dataset(X, Y, name="random")


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.txt.xz"])
@pytest.mark.parametrize("graded", [True, False])
def test_round_trip_is_exact(tmp_path, name, graded):
    ds = random_dataset(graded=graded)
    write_xc(tmp_path / name, ds)
    first = (tmp_path / name).read_bytes()
    write_xc(tmp_path / name, ds)
    assert first == (tmp_path / name).read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == [name]
    again = load(tmp_path / name)
    assert again.X.shape == ds.X.shape
    assert again.X.data.tobytes() == ds.X.data.tobytes()
    assert again.Y.data.tobytes() == ds.Y.data.tobytes()
    assert np.array_equal(again.Y.indices, ds.Y.indices)


def write_folder(folder):
    (folder / "train.txt").write_text("2 3 2\n1 0:0.5 2:1\n0,1 1:2\n")
    (folder / "labels.txt").write_text("sea\nsun\n")
    (folder / "features.txt.gz").write_bytes(gzip.compress(b"a\nb\nc"))
    (folder / "label_text.txt").write_text("the sea\r\nthe sun\r\n")
    (folder / "titles.train.txt.xz").write_bytes(lzma.compress(b"first\nsecond\n"))
    (folder / "train_grades.txt").write_text("1:4\n0:2 1:3\n")


def test_sidecars(tmp_path):
    write_folder(tmp_path)
    ds = load(tmp_path / "train.txt")
    assert ds.label_names == ["sea", "sun"]
    assert ds.feature_names == ["a", "b", "c"]
    assert ds.label_texts == ["the sea", "the sun"]
    assert (ds.titles, ds.texts) == (["first", "second"], None)
    assert ds.Y.toarray().tolist() == [[0, 4], [2, 3]]
    assert ds.is_graded
    assert ds.name == tmp_path.name
    assert not load(tmp_path / "train.txt", grades=False).is_graded
    bare = load(tmp_path / "train.txt", sidecars=False, name="bare")
    assert bare.label_names is bare.titles is None
    assert not bare.is_graded


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("labels.txt", "sea\n", "expected 1 labels, the header has 2"),
        ("features.txt.gz", "a\nb\nc\nd\n", "expected 4 features, the header has 3"),
        ("label_text.txt", "\n\n\n", "label_texts must have 2 entries, got 3"),
        ("titles.train.txt.xz", "one\n", "titles must have 2 entries, got 1"),
        ("train_grades.txt", "1:4\n", "train_grades.txt: must have 2 lines, one per row, got 1"),
        ("train_grades.txt", "1:4\n0:-2\n", "Y must hold values >= 0, got -2 at row 1"),
        ("train_grades.txt", "1:4\n2:1\n", "grades.txt: line 2: label id must be below 2, got '2:1'"),
    ],
)
def test_wrong_line_counts_and_grades_are_errors(tmp_path, file, content, said):
    write_folder(tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=f"train.txt: .*{said}"):
        load(tmp_path / "train.txt")


def test_unreadable_paths(tmp_path):
    with pytest.raises(ValueError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.txt")
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(ValueError, match="is empty"):
        load(tmp_path / "empty.txt")
    (tmp_path / "bad.txt").write_text("1 4 3\n5 1:1\n")
    with pytest.raises(ValueError, match=r"bad\.txt: line 2: label id must be below 3, got '5'"):
        load(tmp_path / "bad.txt")
    (tmp_path / "labels.txt").write_bytes(b"\xff\n\n\n")
    (tmp_path / "ok.txt").write_text("1 4 3\n1 1:1\n")
    with pytest.raises(ValueError, match=r"labels\.txt: line 1 is not UTF-8"):
        load(tmp_path / "ok.txt")
    (tmp_path / "labels.txt").unlink()
    with pytest.raises(FileNotFoundError, match="no such file of grades"):
        load(tmp_path / "ok.txt", grades=True)
