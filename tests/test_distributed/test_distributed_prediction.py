"""A model ranks on a cluster what it ranks locally, to the byte; files hold the same."""

from __future__ import annotations

import gzip

import makers
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from clusters import cluster

pytest.importorskip("distributed")
pq = pytest.importorskip("pyarrow.parquet")

from metarank import Dataset, MetaRanker, data  # noqa: E402
from metarank.data import read_parquet, to_parquet, write_xc  # noqa: E402
from metarank.distributed import DaskMetaRanker, ShardedRanker, rank, rank_points, read  # noqa: E402


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr("metarank.distributed.prediction.PART_ROWS", 17)


def table(urls):
    import pyarrow as pa

    return pa.concat_tables([pq.read_table(url) for url in urls])


@pytest.mark.parametrize("maker", ["dense", "sparse", "texts", "many labels"])
def test_same_answers_as_locally(maker, client):
    model, rows = makers.fitted(maker), makers.MAKERS[maker]()
    rng = np.random.default_rng(0)
    exclude = sp.csr_matrix(rng.random((rows.n_rows, model.n_labels_)) < 0.1)
    found, local = rank(model, rows, 3, client=client, exclude=exclude), model.rank(rows, 3, exclude=exclude)
    assert found.labels.tobytes() == local.labels.tobytes()
    assert found.scores.tobytes() == local.scores.tobytes()
    assert found.label_names == local.label_names
    distributed = DaskMetaRanker(client, **makers.QUICK)
    distributed.__dict__.update({k: v for k, v in vars(model).items() if k.endswith("_")})
    allowed = [0, 2]
    for method in ("predict_proba", "predict", "decision_function"):
        ours, theirs = (getattr(m, method)(rows, allowed=allowed) for m in (distributed, model))
        assert type(ours) is type(theirs)
        if sp.issparse(ours):
            assert (ours != theirs).nnz == 0
            ours, theirs = ours.data, theirs.data
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()


def test_own_candidates_are_cut_by_rows(client):
    model, rows = makers.fitted("dense"), makers.dense()
    own = [[i % 4] for i in range(rows.n_rows)]
    assert rank(model, rows, 1, client=client, candidates=own).labels[:, 0].tolist() == [
        i % 4 for i in range(60)
    ]
    scores = sp.csr_matrix(np.arange(1, 1 + rows.n_rows * model.n_labels_).reshape(rows.n_rows, -1))
    with pytest.raises(ValueError, match="candidates must be a shortlist"):
        rank(model, rows, 1, client=client, candidates=scores)


def blocks_in(form: str):
    """The rows of the maker of blocks as a dict, or a table of a library."""
    blocks = makers.blocks().X
    own = {"title": blocks["title"], "colour": blocks["colour"][:, 0].tolist()}
    if form == "dict":
        return own | {name: blocks[name] for name in ("vector", "numbers")}
    own |= {"vector": blocks["vector"].tolist()}
    own |= {name: blocks["numbers"][:, j].tolist() for j, name in enumerate(blocks.columns["numbers"])}
    library = pytest.importorskip(form)
    return library.table(own) if form == "pyarrow" else library.DataFrame(own)


@pytest.mark.parametrize("form", ["dict", "pandas", "polars", "pyarrow"])
def test_blocks_in_all_forms(form, client, tmp_path):
    model, rows = makers.fitted("blocks"), blocks_in(form)
    local = model.rank(makers.blocks(), 2)
    assert rank(model, rows, 2, client=client).scores.tobytes() == local.scores.tobytes()
    found = table(rank(model, rows, 2, client=client, out=str(tmp_path / "out")))
    assert found["score"].to_numpy().tobytes() == local.scores.ravel().tobytes()
    assert rank_points(model, rows, 1, client=client).n_labels == len(local.labels)
    assert ShardedRanker(model, client=client).rank(rows, 2).scores.tobytes() == local.scores.tobytes()
    with pytest.raises((TypeError, ValueError), match="title"):
        rank(model, {"body": ["a text"] * 40}, 2, client=client)
    with pytest.raises(TypeError, match=r"^X must"):
        rank(makers.fitted("texts"), {"title": ["a text"] * 40}, 2, client=client)


@pytest.mark.parametrize("with_rows", [True, False])
def test_given_candidates_are_cut_by_rows(with_rows, client, tmp_path):
    ds = makers.dense()
    given, n = makers.given_pairs(ds.n_rows, ds.n_labels), ds.n_rows
    own = {"candidates": dict(given.scores), "pair_features": dict(given.features)}
    X = ds.X if with_rows else None
    model = MetaRanker(**makers.QUICK).fit(X, ds.Y, **own)
    found, local = rank(model, X, 3, client=client, **own), model.rank(X, 3, **own)
    assert found.labels.tobytes() == local.labels.tobytes()
    assert found.scores.tobytes() == local.scores.tobytes()
    assert rank_points(model, X, 2, client=client, **own).n_labels == n
    cut = table(rank(model, X, 4, client=client, out=str(tmp_path / "cut"), optimize="micro-f1", **own))
    assert len(cut) == model.predict(X, "micro-f1", **own).nnz
    with pytest.raises(ValueError, match=r"^candidates must hold those of the fit"):
        rank(model, X, 3, client=client, pair_features=own["pair_features"])
    with pytest.raises(ValueError, match=r"^X "):
        rank(model, None if with_rows else ds.X, 3, client=client, **own)
    with pytest.raises(ValueError, match=r"^model must be fitted without candidates"):
        ShardedRanker(model, client=client)


def test_labels_by_name(client):
    model, rows = makers.fitted("texts"), makers.texts()
    for parameter in ("allowed", "exclude", "candidates"):
        for lists in (["bread", "code"], [["bread"], [2]] * (rows.n_rows // 2)):
            found = rank(model, rows, 3, client=client, **{parameter: lists})
            local = model.rank(rows, 3, **{parameter: lists})
            assert found.labels.tolist() == local.labels.tolist()
    with pytest.raises(ValueError, match=r"^allowed must name labels of this model"):
        rank(model, rows, 3, client=client, allowed=["the moon"])


def test_names_and_the_index_of_a_frame(client):
    model, texts = makers.fitted("texts"), makers.texts().texts
    series = pd.Series(texts, index=[f"document {i}" for i in range(len(texts))])
    distributed = DaskMetaRanker(client, **makers.QUICK)
    distributed.__dict__.update({k: v for k, v in vars(model).items() if k.endswith("_")})
    assert distributed.predict(series, return_names=True) == model.predict(series, return_names=True)
    assert rank(model, series, 2, client=client).to_frame().equals(model.rank(series, 2).to_frame())


def test_pairs_in_files_are_those_of_a_local_ranking(client, tmp_path):
    model, rows = makers.fitted("texts"), makers.texts()
    urls = rank(model, rows.texts, 2, client=client, out=str(tmp_path / "out"))
    assert [url.rsplit("/", 1)[1] for url in urls] == [f"part-0000{i}.parquet" for i in range(4)]
    local = model.rank(rows.texts, 2)
    row, place = np.nonzero(local.labels >= 0)
    found = table(urls)
    assert found.column_names == ["row", "rank", "label", "label_name", "score", "without_evidence"]
    assert found["row"].to_pylist() == row.tolist()
    assert found["rank"].to_pylist() == (place + 1).tolist()
    assert found["label"].to_pylist() == local.labels[row, place].tolist()
    assert found["label_name"].to_pylist() == [model.label_names_[i] for i in local.labels[row, place]]
    assert found["score"].to_numpy().tobytes() == local.scores[row, place].tobytes()


def test_pairs_above_the_cut(client, tmp_path):
    model, rows = makers.fitted("sparse"), makers.sparse()
    found = table(rank(model, rows, 4, client=client, out=str(tmp_path / "out"), optimize="micro-f1"))
    kept = sp.csr_matrix(
        (np.ones(len(found)), (found["row"].to_numpy(), found["label"].to_numpy())), rows.Y.shape
    )
    assert (kept != model.predict(rows, "micro-f1")).nnz == 0


@pytest.mark.parametrize("maker", ["dense", "many labels"])
def test_points_of_each_label_are_the_most_probable(maker, client, tmp_path):
    model, rows = makers.fitted(maker), makers.MAKERS[maker]()
    found = rank_points(model, rows, 5, client=client, n_files=3)
    local = model.rank_points(rows, 5)
    assert found.labels.tobytes() == local.labels.tobytes()
    assert found.scores.tobytes() == local.scores.tobytes()
    proba = model.predict_proba(rows)
    proba = proba.toarray() if sp.issparse(proba) else proba
    for label in range(model.n_labels_):
        order = np.lexsort((np.arange(len(proba)), -proba[:, label]))
        best = [i for i in order if proba[i, label] > 0][:5]
        assert found.labels[label, : len(best)].tolist() == best
        assert (found.labels[label, len(best) :] == -1).all()
        assert found.scores[label, : len(best)].tobytes() == proba[best, label].tobytes()
    written = table(rank_points(model, rows, 5, client=client, n_files=3, out=str(tmp_path / "out")))
    label, place = np.nonzero(found.labels >= 0)
    assert written["label"].to_pylist() == label.tolist()
    assert written["row"].to_pylist() == found.labels[label, place].tolist()


@pytest.mark.parametrize("maker", ["dense", "texts", "blocks", "many labels"])
def test_points_are_ranked_together_wherever_they_are(maker, client, tmp_path):
    """Each list has places within all rows, and is that of a local model; so is the fit."""
    model, rows = makers.fitted(maker, **makers.QUICK, labelwise=True), makers.MAKERS[maker]()
    rng = np.random.default_rng(0)
    exclude = sp.csr_matrix(rng.random((model.n_rows_, model.n_labels_)) < 0.1)
    local = model.rank_points(rows, 5, exclude=exclude)
    found = rank_points(model, rows, 5, client=client, n_files=3, exclude=exclude)
    assert found.labels.tobytes() == local.labels.tobytes()
    assert found.scores.tobytes() == local.scores.tobytes()
    assert found.n_labels == local.n_labels
    written = table(rank_points(model, rows, 5, client=client, out=str(tmp_path / "out"), exclude=exclude))
    label, place = np.nonzero(local.labels >= 0)
    assert written["row"].to_pylist() == local.labels[label, place].tolist()
    assert written["score"].to_numpy().tobytes() == local.scores[label, place].tobytes()
    fitted = DaskMetaRanker(client, **makers.QUICK, labelwise=True).fit(rows)
    ours, theirs = (
        makers.saved_bytes(m, tmp_path / str(i)) for i, m in enumerate((fitted.to_local(), model))
    )
    assert ours == theirs
    assert fitted.rank_points(rows, 5).scores.tobytes() == model.rank_points(rows, 5).scores.tobytes()


def test_points_of_given_pairs(client):
    rows = makers.dense()
    given = makers.given_pairs(rows.n_rows, rows.n_labels)
    own = {"candidates": dict(given.scores), "pair_features": dict(given.features)}
    for X in (rows.X, None):
        model = MetaRanker(**makers.QUICK, labelwise=True).fit(X, rows.Y, **own)
        found, local = rank_points(model, X, 3, client=client, **own), model.rank_points(X, 3, **own)
        assert found.labels.tobytes() == local.labels.tobytes()
        assert found.scores.tobytes() == local.scores.tobytes()


def test_every_pair_makes_no_lists_of_points(client):
    with pytest.raises(ValueError, match=r"^labelwise must be False where ranker_pairs='all'"):
        DaskMetaRanker(client, ranker="lambdarank", ranker_pairs="all", labelwise=True).fit(makers.dense())


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
    pq.write_table(
        pq.read_table(tmp_path / "0.parquet").replace_schema_metadata(None), plain, row_group_size=7
    )
    parts = read(str(plain), text_column="text")
    assert len(parts.parts) == 5
    same(parts.collect(), read_parquet(plain, text_column="text"))
    same(read(str(plain)).collect(), read_parquet(plain, text_column="text"))


def test_files_are_ranked_and_fitted_part_by_part(client, tmp_path):
    rows = makers.sparse()
    write_xc(tmp_path / "rows.txt", rows)
    parts = read(str(tmp_path / "rows.txt"), block_bytes=500)
    assert len(parts.parts) > 2
    model = DaskMetaRanker(client, **makers.QUICK).fit(parts)
    local = makers.fitted("sparse")
    assert np.array_equal(model.rank(parts, 3).scores, local.rank(rows, 3).scores)
    found = table(rank(local, parts, 3, client=client, out=str(tmp_path / "out"), exclude=rows.Y))
    expected = local.rank(rows, 3, exclude=rows.Y)
    assert found["label"].to_pylist() == expected.labels[expected.labels >= 0].tolist()


def test_errors_of_reading_name_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file at"):
        read(str(tmp_path / "none-*.txt"))
    (tmp_path / "svm.txt").write_text("1 0:1\n")
    with pytest.raises(ValueError, match=r"svm\.txt: must be Parquet, or text with the header"):
        read(str(tmp_path / "svm.txt"))
    (tmp_path / "short.txt").write_text("3 2 2\n1 0:1\n")
    with pytest.raises(ValueError, match="the headers say 3 rows, found 1"):
        read(str(tmp_path / "short.txt"))
    with gzip.open(tmp_path / "bad.txt.gz", "wb") as f:
        f.write(b"1 2 2\n1 5:1\n")
    with pytest.raises(ValueError, match=r"bad\.txt\.gz, in the part from byte 0 on: .*5"):
        read(str(tmp_path / "bad.txt.gz")).collect()
    with pytest.raises(ValueError, match="block_bytes must be positive"):
        read("x", block_bytes=0)


def test_bad_arguments_are_named(client):
    model, rows = makers.fitted("dense"), makers.dense()
    with pytest.raises(ValueError, match="optimize goes with out"):
        rank(model, rows, optimize="micro-f1", client=client)
    with pytest.raises(TypeError, match="model must be a MetaRanker"):
        rank(None, rows, client=client)
    with pytest.raises(ValueError, match="k must be a positive integer"):
        rank(model, rows, 0, client=client)
    with pytest.raises(ValueError, match="exclude must"):
        rank(model, rows, client=client, exclude=[[1]])


def bytes_below(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("ask", [rank, rank_points])
def test_a_folder_that_holds_anything_is_refused(ask, client, tmp_path):
    """Parts of an earlier, longer run would be read as parts of this one."""
    model, rows = makers.fitted("dense"), makers.dense()
    out = tmp_path / "out"
    out.mkdir()
    ask(model, rows, 2, client=client, out=str(out))
    before = bytes_below(out)
    with pytest.raises(
        ValueError, match=r"out must be an empty or new folder, .* holds 'part-00000\.parquet'"
    ):
        ask(model, rows.take(slice(0, 10)), 2, client=client, out=f"file://{out}/")
    assert bytes_below(out) == before


@pytest.mark.parametrize("ask", [rank, rank_points])
def test_folders_of_other_file_systems_are_looked_into(ask, client, tmp_path):
    import fsspec

    fs = fsspec.filesystem("memory")
    folder = f"/{tmp_path.name}-{ask.__name__}"
    fs.pipe_file(f"{folder}/notes.txt", b"")
    with pytest.raises(ValueError, match=r"out must be an empty or new folder, .* holds 'notes\.txt'"):
        ask(makers.fitted("dense"), makers.dense(), client=client, out=f"memory:/{folder}")


@pytest.mark.parametrize("place", ["", "file", "file/out", "/proc/nowhere", "zz://bucket/out"])
def test_out_that_cannot_be_written_to_is_named(place, client, tmp_path):
    (tmp_path / "file").write_text("")
    out = str(tmp_path / place) if place.startswith("file") else place
    with pytest.raises(ValueError, match=r"^out must be a .*, got ") as error:
        rank(makers.fitted("dense"), makers.dense(), client=client, out=out)
    assert repr(out) in str(error.value)
