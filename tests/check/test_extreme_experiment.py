"""experiments/extreme: figures, cuts and verdicts say what they claim, and the command writes its page."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

FOLDER = Path(__file__).parents[2] / "experiments" / "extreme"
_PATH, _MODULES = list(sys.path), dict(sys.modules)
# Another study may have a module of the same name.
_OWN = ("contenders", "cuts", "judging", "report", "run", "sets", "verdicts")
for _name in _OWN:
    sys.modules.pop(_name, None)
sys.path[:0] = [str(FOLDER), str(FOLDER.with_name("shortlist_speed"))]

import adapters.metaranker  # noqa: E402, F401
import contenders  # noqa: E402
import judging  # noqa: E402
import measure  # noqa: E402
import run  # noqa: E402
import sets  # noqa: E402
from borrowed_runs import TAIL, Prepared, Setting, prepare  # noqa: E402
from cuts import F1, best_f1  # noqa: E402
from verdicts import verdicts  # noqa: E402

sys.path[:] = _PATH
for _name in _OWN:
    sys.modules.pop(_name, None)
sys.modules.update({name: module for name, module in _MODULES.items() if name in _OWN})

from metarank import Ranking, data, metrics  # noqa: E402

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc"
)


def prepared(folder: Path, **matrices: list[list[int]]) -> Prepared:
    for name, rows in matrices.items():
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(np.array(rows, np.float32)))
    return Prepared("toy", folder, "none", {})


def test_figures_of_a_list_made_by_hand(tmp_path):
    # Label 0 is frequent, label 1 has one training point, label 2 none.
    Y = [[1, 0, 0, 1]] * 6 + [[0, 1, 0, 1]]
    dataset = prepared(tmp_path, Y=Y, Y_test=[[1, 1, 0, 0], [0, 1, 0, 0]])
    lists = {
        "labels": np.array([[0, 2], [3, 1]], np.int32),
        "scores": np.array([[0.9, 0.2], [0.8, 0.5]], "f4"),
    }
    np.savez(tmp_path / "run.npz", **lists)
    values = judging.Judge(dataset).values(tmp_path / "run.npz")
    assert list(values) == list(judging.COLUMNS)
    assert values["P@1"] == 0.5
    assert values["R@100"] == 0.75
    assert values[TAIL] == 0.5  # of the two test labels that are label 1
    assert values["C@5"] == 1.0
    assert values["micro-F1"] == pytest.approx(4 / 6)  # the first three pairs by score, two of them right


def test_what_is_out_of_the_question_is_not_judged(tmp_path):
    dataset = prepared(tmp_path, Y=[[1, 1, 1]] * 4, Y_test=[[0, 1, 0]], exclude_test=[[1, 0, 0]])
    cuts = {"indptr": np.array([0, 2]), "labels": np.array([0, 1])}
    own = {f"{name.lower()} {part}": array for name in F1 for part, array in cuts.items()}
    scores = np.array([[2, 1, -np.inf]], np.float32)
    np.savez(tmp_path / "run.npz", labels=np.array([[0, 1, -1]], np.int32), scores=scores, **own)
    values = judging.Judge(dataset).values(tmp_path / "run.npz")
    assert values["P@1"] == values["micro-F1"] == values["example-F1"] == 1.0
    assert values["macro-F1"] == pytest.approx(1 / 3)


def slow_best_f1(Y: sp.csr_matrix, ranking: Ranking) -> dict[str, float]:
    listed = ranking.labels >= 0
    row, label, score = np.nonzero(listed)[0], ranking.labels[listed], ranking.scores[listed]
    best = dict.fromkeys(F1, 0.0)
    for threshold in [np.inf, *np.unique(score)]:
        kept = score >= threshold
        cut = sp.csr_matrix((np.ones(kept.sum()), (row[kept], label[kept])), shape=Y.shape)
        values = metrics.evaluate(Y, None, F1, Y_pred=cut)
        best = {name: max(best[name], values[name]) for name in F1}
    return best


@pytest.mark.parametrize("seed", range(5))
def test_the_best_cut_is_the_best_of_all_thresholds(seed):
    rng = np.random.default_rng(seed)
    Y = sp.csr_matrix((rng.random((12, 9)) < 0.2).astype(np.float32))
    scores = rng.integers(0, 5, (12, 9)).astype(np.float32)
    ranking = Ranking.from_scores(scores, k=4)
    assert best_f1(Y, ranking) == pytest.approx(slow_best_f1(Y, ranking))


def row(accuracy: float, **others: float) -> dict[str, float]:
    costs = {"train_cpu_s": 20.0, "single_ms": 0.4, "batch_ms": 0.2, "memory_mib": 900.0}
    return dict.fromkeys(judging.COLUMNS, accuracy) | costs | others


PEERS = {
    "tree": {"omikuji": row(0.30, **{"PSP@5": 0.20}), "pecos": row(0.31)},
    "flat": {"one-vs-all": row(0.32, train_cpu_s=160.0)},
}


def failing(name: str, rows: dict) -> list[str]:
    return [verdict.claim for verdict in verdicts(name, rows) if not verdict.holds]


def test_a_pipeline_far_above_its_peers_holds_all_claims():
    rows = {**PEERS, "pipeline": {"plain": row(0.40, **{TAIL: 0.62})}, "names": {"named": row(0.45)}}
    found = verdicts("LLMs4Subjects-dev-en", rows)
    assert all(verdict.holds for verdict in found)
    assert "40.00 against 31.00 (pecos), 1.29 times" in [verdict.told for verdict in found]


def test_what_does_not_hold_is_said():
    changed = {"nDCG@5": 0.325, "PSP@3": 0.31, "train_cpu_s": 41.0, "single_ms": 1.5, TAIL: 0.5}
    rows = {**PEERS, "pipeline": {"plain": row(0.40, **changed)}, "names": {"named": row(0.39)}}
    assert failing("LLMs4Subjects-dev-en", rows) == [
        f"plain: {TAIL} at least 2 times the best tree peer's",
        "plain: no metric below one-vs-all",
        "plain: nDCG@5 at least 1.03 times one-vs-all's",
        "plain: training within its share of one-vs-all",
        "plain: below 1 ms a single point, 0.5 ms in a batch",
        "named: PSP@5 at least 1.3 times one-vs-all's",
        "named: above plain",
    ]
    told = next(v.told for v in verdicts("LLMs4Subjects-dev-en", rows) if "no metric" in v.claim)
    assert told == "PSP@3 -1.00"


def test_little_training_is_never_held_against_it():
    rows = {
        "flat": {"one-vs-all": row(0.1, train_cpu_s=1.0)},
        "pipeline": {"plain": row(0.2, train_cpu_s=29)},
    }
    assert failing("pydocs", rows) == []


def test_a_pipeline_over_one_shortlister_is_compared_with_it():
    alone = {"metarank XReg": row(0.3), "metarank Parabel": row(0.9)}
    rows = {"shortlister": alone, "over one": {"metaranker over XReg": row(0.3)}}
    assert failing("pydocs", rows) == ["metaranker over XReg: above metarank XReg alone"]


def test_every_contender_has_one_group_and_a_name_of_its_own():
    everyone = [setting for group in contenders.GROUPS.values() for setting in group]
    assert len({str(setting) for setting in everyone}) == len(everyone)
    assert all(setting in contenders.GROUPS[contenders.group_of(setting)] for setting in everyone)
    largest = [str(setting) for setting in contenders.contenders(sets.LARGEST)]
    assert "pecos default3" in largest
    assert "pecos one-vs-all" not in largest
    assert isinstance(everyone[0], Setting)


def test_curves_are_those_of_the_paper():
    names = ("WikiLSHTC-325K", "LF-Amazon-131K", "AmazonCat-13K", "Wiki10-31K")
    assert [sets.curve_of(name) for name in names] == ["wikipedia", "amazon", "default", "default"]


@pytest.fixture
def repository(tmp_path) -> Path:
    """A folder as of the Extreme Classification repository."""
    made, folder = data.make_extreme(260, 60, 30, labels_per_row=2, nnz_per_row=8, seed=3), tmp_path / "toy"
    folder.mkdir()
    for part, rows in (("train", slice(200)), ("test", slice(200, None))):
        data.write_xc(folder / f"{part}.txt", made.take(rows))
    return folder


@needs_proc
def test_a_run_of_the_pipeline_keeps_the_label_sets_it_has_cut(tmp_path, repository):
    dataset = prepare(repository, tmp_path)
    params = {"label_text": None, "effort": "low", "ranker": "logistic"}
    job = {"system": "metaranker", "params": params, "threads": 1, "data": str(dataset.folder)}
    job |= {"k": 10, "singles": 5, "predictions": 1, "more": ["cuts", "pairs"], "out": str(tmp_path / "run")}
    (tmp_path / "job.json").write_text(json.dumps(job))
    measure.main(str(tmp_path / "job.json"))
    figures = json.loads((tmp_path / "run.json").read_text())
    assert {"train_cpu_s", "peak_mib", "imports_mib", "model_mib", "single_ms", "batch_ms"} <= set(figures)
    assert 0 < figures["described"] <= figures["proposed"]
    with np.load(tmp_path / "run.npz") as file:
        assert {f"{name.lower()} indptr" for name in F1} <= set(file)
    values = judging.Judge(dataset).values(tmp_path / "run.npz")
    assert values["nDCG@5"] > 0.5
    assert values["micro-F1"] > 0.3


@needs_proc
def test_the_command_writes_its_page_of_a_tiny_set(tmp_path, repository, monkeypatch, capsys):
    monkeypatch.setenv("METARANK_DATA", str(tmp_path / "data"))
    out, cache = tmp_path / "results.md", tmp_path / "cache"
    command = ["--sets", f"{repository},Amazon-670K", "--out", str(out), "--cache", str(cache)]
    assert run.main([*command, "--only", "metarank Neighbor"]) == 0
    assert "Amazon-670K is left out" in capsys.readouterr().err
    page = out.read_text()
    assert "| metarank NeighborShortlister |" in page
    assert str(tmp_path) not in page
    assert run.main([*command, "--kept"]) == 0
    assert out.read_text() == page
