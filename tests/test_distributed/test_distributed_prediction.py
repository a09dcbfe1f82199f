"""A cluster answers what a model answers locally, to the byte; `read` reads files by parts."""

from __future__ import annotations

import gzip

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from clusters import cluster

pytest.importorskip("distributed")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from metarank import Dataset, MetaRanker, data  # noqa: E402
from metarank.data import to_parquet, write_xc  # noqa: E402
from metarank.distributed import DaskMetaRanker, read  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr("metarank.distributed.ranker.PART_ROWS", 17)


def on_cluster(model: MetaRanker, client) -> DaskMetaRanker:
    """The same fitted model, whose answers a cluster gives."""
    out = DaskMetaRanker(client, **model.get_params(deep=False))
    out.__dict__.update({name: value for name, value in vars(model).items() if name.endswith("_")})
    return out


def assert_same(ours, theirs):
    assert type(ours) is type(theirs)
    if sp.issparse(ours):
        assert (ours != theirs).nnz == 0
        ours, theirs = ours.data, theirs.data
    assert ours.dtype == theirs.dtype
    assert ours.tobytes() == theirs.tobytes()


def pairs_of(rows, n_labels):
    given = makers.given_pairs(rows.n_rows, n_labels)
    return {"candidates": dict(given.scores), "pair_features": dict(given.features)}


CASES = {
    "dense": (
        "dense",
        lambda rows, model: {
            "exclude": sp.csr_matrix(
                np.arange(rows.n_rows * model.n_labels_).reshape(rows.n_rows, -1) % 7 < 1
            )
        },
    ),
    "sparse": ("sparse", lambda rows, model: {"allowed": [0, 2]}),
    "texts": ("texts", lambda rows, model: {"allowed": [["bread"], [2]] * (rows.n_rows // 2)}),
    "many labels": ("many labels", lambda rows, model: {}),
    "blocks": ("blocks", lambda rows, model: {}),
    "own candidates": ("dense", lambda rows, model: {"candidates": [[i % 4] for i in range(rows.n_rows)]}),
}


@pytest.mark.parametrize("case", CASES)
def test_same_answers_as_locally(case, client):
    maker, options_of = CASES[case]
    model, rows = makers.fitted(maker), makers.MAKERS[maker]()
    options, cluster_model = options_of(rows, model), on_cluster(model, client)
    found, local = (m.rank(rows, 3, **options) for m in (cluster_model, model))
    assert_same(found.labels, local.labels)
    assert_same(found.scores, local.scores)
    assert found.label_names == local.label_names
    for method in ("predict_proba", "predict", "decision_function"):
        assert_same(*(getattr(m, method)(rows, **options) for m in (cluster_model, model)))
    points, expected = (m.rank_points(rows, 2) for m in (cluster_model, model))
    assert_same(points.labels, expected.labels)


@pytest.mark.parametrize("with_rows", [True, False])
def test_given_candidates_are_cut_by_rows(with_rows, client):
    ds = makers.dense()
    X, own = ds.X if with_rows else None, pairs_of(ds, ds.n_labels)
    model = MetaRanker(**makers.QUICK).fit(X, ds.Y, **own)
    found, local = on_cluster(model, client).rank(X, 3, **own), model.rank(X, 3, **own)
    assert_same(found.scores, local.scores)
    with pytest.raises(ValueError, match=r"^candidates must hold those of the fit"):
        on_cluster(model, client).rank(X, 3, pair_features=own["pair_features"])


def same(a: Dataset, b: Dataset) -> None:
    assert (a.X is None) == (b.X is None)
    for ours, theirs in ((a.X, b.X), (a.Y, b.Y))[a.X is None :]:
        assert (sp.csr_matrix(ours) != sp.csr_matrix(theirs)).nnz == 0
    assert (a.texts, a.label_names) == (b.texts, b.label_names)


@pytest.mark.parametrize("block", [1, 200, 10**9])
@pytest.mark.parametrize("suffix", ["txt", "txt.gz"])
def test_text_in_parts_is_the_whole(block, suffix, client, tmp_path):
    rows = makers.sparse()
    path = tmp_path / f"train.{suffix}"
    write_xc(path, rows)
    parts = read(str(path), client=client, block_bytes=block)
    assert parts.n_rows == rows.n_rows
    assert len(parts.parts) == (1 if block > 10**6 or suffix.endswith("gz") else len(parts.parts))
    same(parts.collect(client), data.load(path))


def test_parquet_in_parts_is_the_whole(client, tmp_path):
    rows = makers.texts()
    for i in range(2):
        to_parquet(rows.take(slice(30 * i, 30 * (i + 1))), tmp_path / f"{i}.parquet")
    parts = read(f"file://{tmp_path}/*.parquet", client=client)
    same(parts.collect(), rows)
    plain = tmp_path / "plain.parquet"
    labels = [[rows.label_names[j] for j in row.indices] for row in rows.Y[:30]]
    pq.write_table(pa.table({"text": rows.texts[:30], "labels": labels}), plain, row_group_size=7)
    parts = read(str(plain), text_column="text")
    assert len(parts.parts) == 5
    same(parts.collect(), data.load(plain, text_column="text"))
    same(read(str(plain)).collect(), data.load(plain, text_column="text"))


def test_files_are_ranked_and_fitted_part_by_part(client, tmp_path):
    rows = makers.sparse()
    write_xc(tmp_path / "rows.txt", rows)
    parts = read(str(tmp_path / "rows.txt"), block_bytes=500)
    assert len(parts.parts) > 2
    model = DaskMetaRanker(client, **makers.QUICK).fit(parts)
    local = makers.fitted("sparse")
    assert np.array_equal(model.rank(parts, 3).scores, local.rank(rows, 3).scores)


def test_errors_of_reading_name_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file at"):
        read(str(tmp_path / "none-*.txt"))
    (tmp_path / "svm.txt").write_text("1 0:1\n")
    with pytest.raises(ValueError, match=r"svm\.txt: must be Parquet, or text with the header"):
        read(str(tmp_path / "svm.txt"))
    (tmp_path / "short.txt").write_text("3 2 2\n1 0:1\n")
    with pytest.raises(ValueError, match="the headers have 3 rows, found 1"):
        read(str(tmp_path / "short.txt"))
    with gzip.open(tmp_path / "bad.txt.gz", "wb") as f:
        f.write(b"1 2 2\n1 5:1\n")
    with pytest.raises(ValueError, match=r"bad\.txt\.gz, in the part from byte 0 on: .*5"):
        read(str(tmp_path / "bad.txt.gz")).collect()
    with pytest.raises(ValueError, match="block_bytes must be positive"):
        read("x", block_bytes=0)
