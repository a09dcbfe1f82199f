"""experiments/bench, fusion: against hand-worked cases, planted structures and slow twins; the page."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

from metarank.shortlist import Parabel

with study("bench"):
    from declared import Lines
    from studies import fusion
    from systems import meaning
    from systems.fusion import pairs, reranking, rivals, yso


def csr(rows: list[list[float]]) -> sp.csr_matrix:
    return sp.csr_matrix(np.array(rows, np.float32))


def test_fusions_by_hand():
    first, second = csr([[0.9, 0.5, 0], [0.2, 0.2, 0.1]]), csr([[0, 0.3, 0.4], [0, 0, 0.5]])
    assert rivals.ranks(first).tolist() == [1, 2, 1, 2, 3]
    np.testing.assert_allclose(
        rivals.reciprocal_ranks([first, second]).toarray(),
        [[1 / 61, 1 / 62 + 1 / 62, 1 / 61], [1 / 61, 1 / 62, 1 / 63 + 1 / 61]],
        rtol=1e-6,
    )
    np.testing.assert_allclose(rivals.weighted_mean(first, second, 0.25).toarray()[0], [0.225, 0.35, 0.3])
    assert rivals.best(first, 1).toarray().tolist() == csr([[0.9, 0, 0], [0.2, 0, 0]]).toarray().tolist()


def test_the_weight_and_lightgbm_find_what_is_planted():
    rng = np.random.default_rng(0)
    Y = (rng.random((200, 30)) < 0.2).astype(np.float32)
    good, noise = csr(0.7 * Y + rng.random(Y.shape)), csr(rng.random(Y.shape))
    assert rivals.best_weight(csr(Y), good, noise) > 0.7
    assert rivals.best_weight(csr(Y), noise, good) < 0.3
    X = np.column_stack([noise.toarray().ravel(), good.toarray().ravel()])
    query = np.repeat(np.arange(200), 30)
    scores = rivals.lambdarank(X, Y.ravel(), query, query < 40, X[:6000:7], 0)
    assert (
        abs(np.corrcoef(scores, X[:6000:7, 1])[0, 1]) > 0.6 > abs(np.corrcoef(scores, X[::7, 0])[0, 1]) + 0.4
    )


def test_columns_of_yso_by_hand():
    sources = [csr([[0.8, 0.4, 0]]), csr([[0, 0.5, 0.5]])]
    found = yso.columns(sources, csr([[1, 1, 1]]), np.array([0, 1, 3]))
    wanted = [[0.8, 1, 1, 0, 0, 0, 1, 0], [0.4, 0.5, 0.5, 0.5, 1, 1, 2, np.log(2)]]
    np.testing.assert_allclose(found, [*wanted, [0, 0, 0, 0.5, 0.5, 1, 1, np.log(4)]], rtol=1e-6)


def test_columns_of_reranking_are_those_of_slow_formulas():
    rng = np.random.default_rng(1)
    X = csr(rng.random((40, 12)) * (rng.random((40, 12)) < 0.4))
    Y = csr(rng.random((40, 6)) < 0.3)
    scores = csr(rng.random((40, 6)) * (rng.random((40, 6)) < 0.7))
    given = {
        "feature_names": [*"abcdefghijkl"],
        "label_names": ["a B", "c", "z", "", "d z", "e"],
        "label_texts": None,
    }
    names = reranking.words_of_names(given, 6, 12)
    assert names.toarray()[0, :3].tolist() == [0.5, 0.5, 0]
    found = reranking.columns(scores, X, X, Y, names)
    has, y = X.toarray() > 0, Y.toarray()
    tf = y.T @ has
    idf = np.log(1 + (40 - has.sum(0) + 0.5) / (has.sum(0) + 0.5))
    total = tf.sum(1, keepdims=True)
    bm25 = idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * total / total.mean()))
    centroid = y.T @ X.toarray()
    centroid /= np.linalg.norm(centroid, axis=1, keepdims=True)
    for line, (r, label) in zip(found, zip(*scores.nonzero())):
        better = (scores[[r]].data > scores[r, label]).sum() + 1
        name = {1: has[r, 2], 0: has[r, :2].mean(), 5: has[r, 4], 4: has[r, 3]}.get(label, 0)
        wanted = [scores[r, label], better, bm25[label] @ has[r], centroid[label] @ X.toarray()[r], name]
        np.testing.assert_allclose(line, [*wanted, np.log1p(y[:, label].sum())], rtol=1e-4)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc")
def test_a_peer_answers_from_its_environment_and_is_missed(monkeypatch):
    rng = np.random.default_rng(2)
    X, Y = csr(rng.random((60, 8))), csr(np.eye(4)[rng.integers(0, 4, 60)])
    monkeypatch.setenv("BENCH_ENVIRONMENTS", "nowhere")
    with pytest.raises(FileNotFoundError, match="omikuji is not installed: make bench-setup"):
        reranking.of_peer("omikuji", {}, X, Y, X[:5])
    monkeypatch.setattr(reranking, "python_of", lambda peer, folder: Path(sys.executable))
    found = reranking.of_peer("shortlister", {"estimator": "Parabel", "random_state": 3}, X, Y, X[:5])
    wanted = Parabel(random_state=3).fit(X, Y, n_jobs=1).shortlist(X[:5], k=4, n_jobs=1).to_csr()
    np.testing.assert_allclose(found.toarray(), wanted.toarray(), rtol=1e-6)


def test_training_scores_come_from_other_folds_in_the_order_of_rows(monkeypatch):
    system = reranking.System({"random_state": 0, "retriever": "inverted index"}, 1)
    system.X, system.fold = csr(np.diag(np.arange(1.0, 13))), np.array([2, 0, 1, 4, 3, 0] * 2)
    seen_of = []

    def retrieved(seen, new):
        seen_of.append((set(seen), set(new.indices)))
        return new

    monkeypatch.setattr(system, "retrieved", retrieved)
    assert (system.training_scores() != system.X).nnz == 0
    assert all(seen | inside == set(range(12)) and not seen & inside for seen, inside in seen_of)


def test_pairs_keep_their_documents(tmp_path):
    rng = np.random.default_rng(3)
    X, grades = rng.random((9, 46)), np.array([0, 1, 0, 2, 0, 0, 1, 0, 3.0])
    given = {"X": X, "grades": grades, "queries": np.repeat([5, 2, 7], 3), "part": np.repeat([1, 1, 0], 3)}
    np.savez(tmp_path / "rows.npz", **given)
    system = pairs.System({"random_state": 0}, 1)
    system.read(tmp_path)
    assert system.part.tolist() == [0, 1, 1]
    assert system.matrix(system.grades).sum(axis=1).A1.tolist() == [4, 2, 1]
    assert system.matrix(system.grades).nnz == 9
    for x, grade in zip(system.X, system.grades):
        assert grades[(x == X).all(axis=1)] == grade


def test_ways_that_one_would_write_leave_a_label_without_rows_last():
    system = meaning.System({"random_state": 0, "way": "svc"}, 1)
    system.texts = ["green tea", "red wine", "tea and wine", "bread"]
    system.Y = csr([[1, 0, 0, 0], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 1]])
    scores = system.svc()[0](["a pot of tea", "wine"])
    assert np.isneginf(scores[:, 2]).all()
    assert scores[:, :2].argmax(axis=1).tolist() == [0, 1]
    assert (system.vote()[0](["bread"]) > 0).tolist() == [[False, False, False, True]]


def test_the_page_is_that_of_its_lines():
    values = {"P@1": 0.5, "nDCG@5": 0.25, "PSP@5": 0.125, "CPU s": 4.0}
    rows = {"retriever": values, "metarank": {**values, "P@1": 0.75, "CPU s": 6.0}, "LightGBM": values}
    lines = [
        {"set": fusion.RERANKED[0], "system": "PECOS", "rows": rows},
        {"set": fusion.RERANKED[1], "system": "PECOS", "failed": "exit 1"},
    ]
    scores = {"nDCG@10": 0.5, "nDCG@1000": 0.625, "F1@5": 0.25}
    told = {"sizes": {"train": 2000, "test": 1, "labels": 3}, "weight": 0.65}
    told["of training"] = {"bonsai": 0.5, "mllm": 0.75}
    lines.append({"set": fusion.YSO, "system": "fusion", "rows": {"bonsai": scores}, **told})
    published = {key: {"nDCG@10": 0.375} for key in fusion.PUBLISHED.values()}
    page = fusion.page(Lines(lines, {fusion.YSO: {"published": published}}))
    assert "2,000 training documents" in page
    assert "of mllm 75.0%" in page
    assert "published: neural ensemble of three sources | 37.5 | - | - | - |\n" in page
    assert "| bonsai | 50.0 | 62.5 | 25.0 | - |" in page
    after = "50.0 -> 75.0 | 25.0 -> 25.0 | 12.5 -> 12.5 | 1.5 | 50.0 | 25.0 | 12.5 | 1.0 |"
    assert f"| LLMs4Subjects-dev-en, PECOS | {after}" in page
    assert "| CiteULike-t-tags, PECOS: exit 1 |" in page
