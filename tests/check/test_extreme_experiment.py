"""experiments/extreme: figures, cuts and verdicts say what they claim, and the command writes its page."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

from metarank import data

with study("extreme", "shortlist_speed", "bench"):
    import judging
    import measure
    import run
    from borrowed_runs import F1, TAIL, Prepared, prepare


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
    params = {"names": False, "effort": "low", "ranker": "logistic"}
    job = {"system": "metaranker", "params": params, "threads": 1, "data": str(dataset.folder)}
    job |= {"k": 10, "singles": 5, "predictions": 1, "more": ["cuts", "pairs"], "out": str(tmp_path / "run")}
    (tmp_path / "job.json").write_text(json.dumps(job))
    with study("extreme", "shortlist_speed", "bench"):
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
