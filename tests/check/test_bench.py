"""experiments/bench: figures say what they claim, cells are run once, a page is that of its lines."""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from studies import study

from metarank import Ranking, metrics

with study("bench"):
    import cells
    import excerpts
    import judging
    import measure
    import page_parts
    import sets
    from declared import Lines, Measure, Study, System
    from studies import thousands

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="memory is read from /proc"
)


def set_of(folder: Path, **matrices: list[list[float]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in matrices.items():
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(np.array(rows, np.float32)))
    return folder


def test_quality_of_lists_made_by_hand(tmp_path):
    # Label 0 is frequent, label 1 has one training row, label 2 none.
    folder = set_of(tmp_path, Y=[[1, 0, 0, 1]] * 6 + [[0, 1, 0, 1]], Y_test=[[1, 1, 0, 0], [0, 1, 0, 0]])
    labels, scores = np.array([[0, 2], [3, 1]], np.int32), np.array([[0.9, 0.2], [0.8, 0.5]], "f4")
    np.savez(tmp_path / "c.npz", **{"/labels": labels, "/scores": scores})
    values = judging.of_lists(folder, tmp_path / "c.npz")[""]
    assert set(values) == {*judging.RANKING, judging.TAIL, *judging.F1}
    assert (values["P@1"], values["R@100"], values["C@5"]) == (0.5, 0.75, 1.0)
    assert values[judging.TAIL] == 0.5  # of the two test labels that are label 1
    assert values["micro-F1"] == pytest.approx(4 / 6)  # the first three pairs by score, two of them right


def test_what_is_out_of_the_question_is_not_judged(tmp_path):
    folder = set_of(tmp_path, Y=[[1, 1, 1]] * 4, Y_test=[[0, 1, 0]], exclude_test=[[1, 0, 0]])
    cut = {"cut indptr": np.array([0, 2]), "cut labels": np.array([0, 1])}
    arrays = {f"{name.lower()}/{part}": array for name in judging.F1 for part, array in cut.items()}
    arrays |= {"/labels": np.array([[0, 1, -1]], np.int32), "/scores": np.array([[2, 1, -np.inf]], "f4")}
    np.savez(tmp_path / "c.npz", **arrays)
    values = judging.of_lists(folder, tmp_path / "c.npz")[""]
    assert values["P@1"] == values["micro-F1"] == values["example-F1"] == 1.0
    assert values["macro-F1"] == pytest.approx(1 / 3)


def slow_best_f1(Y: sp.csr_matrix, ranking: Ranking) -> dict[str, float]:
    listed = ranking.labels >= 0
    row, label, score = np.nonzero(listed)[0], ranking.labels[listed], ranking.scores[listed]
    best = dict.fromkeys(judging.F1, 0.0)
    for threshold in [np.inf, *np.unique(score)]:
        kept = score >= threshold
        cut = sp.csr_matrix((np.ones(kept.sum()), (row[kept], label[kept])), shape=Y.shape)
        values = metrics.evaluate(Y, None, judging.F1, Y_pred=cut)
        best = {name: max(best[name], values[name]) for name in judging.F1}
    return best


@pytest.mark.parametrize("seed", range(5))
def test_the_best_cut_is_the_best_of_all_thresholds(seed):
    rng = np.random.default_rng(seed)
    Y = sp.csr_matrix((rng.random((12, 9)) < 0.2).astype(np.float32))
    scores = rng.integers(0, 5, (12, 9)).astype(np.float32)
    ranking = Ranking.from_scores(scores, k=4)
    assert judging.best_f1(Y, ranking) == pytest.approx(slow_best_f1(Y, ranking))


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A bench with one small set, and a study of two systems, of which one fails."""
    rng = np.random.default_rng(0)
    X, Y = rng.random((60, 8)), np.eye(4)[rng.integers(0, 4, 60)]
    folder = set_of(tmp_path / "sets" / "toy", X=X, Y=Y, X_test=X[:20], Y_test=Y[:20])
    names = dict.fromkeys(("label_names", "label_texts", "feature_names"))
    (folder / "names.json").write_text(json.dumps(names))
    sizes = {"n": 60, "n_test": 20, "D": 8, "L": 4, "nnz_per_row": 8, "labels_per_row": 1}
    (folder / "set.json").write_text(json.dumps({"checksum": "c0ffee", **sizes}))
    monkeypatch.setattr(cells, "PEERS", tmp_path / "peers.jsonl")
    systems = (
        System("Parabel", "shortlister", {"estimator": "Parabel"}),
        System("absent", "shortlister", {"estimator": "Nothing"}),
    )
    study = Study(
        "toys",
        ("toy",),
        systems,
        judging.of_lists,
        lambda lines: page_parts.systems_table(lines, "toy", ["P@1"]),
        Measure(k=3, singles=5, limit=120),
    )
    return cells.Bench(tmp_path, "abc"), study


def test_cells_are_run_once_and_failures_are_rows_that_are_tried_again(bench):
    place, study = bench
    lines = place.carry_out(study.cells(["toy"]))
    assert "AttributeError" in lines[1]["failed"]
    assert lines[0]["quality"][""]["P@1"] > 0.2
    assert lines[0]["train_s"] > 0
    assert lines[0]["memory_mib"] > lines[0]["imports_mib"] > 10
    again = cells.Bench(place.run.parents[1], "abc").carry_out(study.cells(["toy"]))
    assert json.dumps(again[0]) == json.dumps(lines[0])
    with pytest.raises(ValueError, match="has no line of 2 cells, as of toys: toy, Parabel"):
        cells.Bench(place.run.parents[1], "another").carry_out(study.cells(["toy"]), run=False)
    other = cells.Bench(place.run.parents[1], "another").carry_out(study.cells(["toy"]))
    assert other[0]["commit"] == "another"
    assert other[0]["answers_sha256"] == lines[0]["answers_sha256"]
    page = study.page(Lines(lines, {"toy": {}}))
    assert page.splitlines()[2].startswith("| Parabel | **")
    assert "absent: exit 1" in page.splitlines()[3]


def test_kept_lines_of_peers_are_marked_and_their_times_scaled(bench):
    place, study = bench
    peer = System("peer", "omikuji", {}, peer="omikuji", kept=True)
    study = Study("toys", ("toy",), (*study.systems[:1], peer), study.judge, study.page, study.measure)
    ours, theirs = study.cells(["toy"])
    line = place.carry_out([ours])[0]
    cells.keep_peers([{**line, "key": theirs.key, "system": "peer", "peer": "omikuji", "yardstick_s": 0.1}])
    lines = place.carry_out([ours, theirs])
    now = line["yardstick_s"]
    shown = page_parts.scaled(lines[1], Lines(lines, {}))
    assert shown["train_s"] == pytest.approx(line["train_s"] * now / 0.1)
    told = f"| peer | **{100 * line['quality']['']['P@1']:.1f}** | ~{page_parts.number(shown['train_s'])} |"
    assert told in study.page(Lines(lines, {"toy": {}}))
    # Of another set, a line stands for nothing.
    cells.keep_peers([{**line, "key": theirs.key, "peer": "omikuji", "checksum": "other"}])
    assert "not installed" in cells.Bench(place.run.parents[1], "b").carry_out([theirs])[0]["failed"]


with study("bench"):
    MODULES = [
        importlib.import_module(f"studies.{path.stem}")
        for path in sorted(Path(thousands.__file__).parent.glob("[a-z]*.py"))
    ]
STUDIES = [
    getattr(module, name) for module in MODULES for name in ("STUDY", "LARGE") if hasattr(module, name)
]


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)
def test_a_page_finds_each_line_and_no_set_has_kept_peers_alone(study):
    for name in study.sets:
        rows = [system for system in study.systems if system.runs_on(name)]
        assert rows, name
        assert len({system.name for system in rows}) == len(rows), name
        fresh = any(system.peer and not system.kept for system in rows)
        assert fresh or not any(system.kept for system in rows), name


def made_lines(study: Study, dataset: str, quality: dict[str, float]) -> Lines:
    """One line a system, of equal costs; `quality` is nDCG@5 by system, and half of it all else."""
    described = {"L": 10, "n": 5, "n_test": 3, "D": 4, "nnz_per_row": 2, "labels_per_row": 1, "checksum": "c"}
    lines = []
    for cell in study.cells([dataset]):
        ndcg = quality.get(cell.system.name, 0.4)
        every = dict.fromkeys([*judging.RANKING, judging.TAIL, *judging.F1], ndcg / 2) | {"nDCG@5": ndcg}
        costs = dict.fromkeys(page_parts.COSTS.values(), 2.0)
        of = {"set": dataset, "system": cell.system.name, "seed": cell.seed, "yardstick_s": 1.0}
        lines.append({**of, **costs, "quality": {"": every}, "held_out": {"nDCG@5": ndcg - 0.1}})
    return Lines(lines, {dataset: described})


def test_pages_say_who_is_ahead():
    page = thousands.page(made_lines(thousands.STUDY, "pydocs", {"PECOS, 3 trees": 0.5, "metarank": 0.6}))
    assert (
        "| pydocs (10) | 50.0 / 25.0, 2.00 s | 40.0 / 20.0, 2.00 s | 40.0 / 20.0, 2.00 s | 60.0 / 30.0, "
        "2.00 s | – |" in page
    )
    assert (
        "| pydocs | omikuji, 3 trees | Parabel | +0.0 | +0.0 | +0.0 | 1.00 | 1.00 | 1.00 | 1.00 | yes |"
        in page
    )
    assert (
        "| pydocs | PECOS, 3 trees | Parabel | -5.0 | -5.0 | -5.0 | 1.00 | 1.00 | 1.00 | 1.00 | no |" in page
    )
    assert (
        "- pydocs: PECOS, 3 trees in P@1 (25.0, metarank 20.0), nDCG@5 (50.0, metarank 40.0), PSP@5" in page
    )
    assert "- pydocs: omikuji" not in page
    page = thousands.long_page(made_lines(thousands.LARGE, "pydocs", {"XReg-t": 0.43, "LambdaRank": 0.39}))
    assert "| XReg-t | +3.0 / +3.0 | +3.0 / +3.0 |" in page
    assert "| LambdaRank | -1.0 / -1.0 | -1.0 / -1.0 |" in page


def test_the_peak_of_memory_begins_at_the_start_of_the_clock():
    before = measure.start_of_peak()
    block = np.ones(16 << 20)  # too large for memory that was freed before
    assert measure.memory("VmHWM") - before > 0.9 * block.nbytes / 2**20


PAGE = """# Page

## In short

Text.

| set |  | MAP | F1 |
| --- | --- | --- | --- |
| a | ours | **.9** | .8 |
|  | theirs | .7 | .6 |

More.

## Last

None.
"""


OTHER_PAGE = """# Other

## c

|  | x |
| --- | --- |
| i | 1 |
| j | 2 |

## d

|  | x |
| --- | --- |
| j | 3 |
"""


def test_excerpts_are_the_tables_of_pages(tmp_path):
    (tmp_path / "p.md").write_text(PAGE)
    before, after = "<!-- excerpt: p.md | In short | F1 -->", "<!-- end of excerpt -->"
    wanted = "| set |  | F1 |\n| --- | --- | --- |\n| a | ours | .8 |\n|  | theirs | .6 |"
    document = f"One.\n\n{before}\nold\n{after}\n\nTwo."
    filled = excerpts.filled(document, tmp_path)
    assert filled == f"One.\n\n{before}\n\n{wanted}\n\n{after}\n\nTwo."
    assert excerpts.filled(filled, tmp_path) == filled
    (tmp_path / "q.md").write_text(OTHER_PAGE)
    several = document.replace("p.md | In short | F1", "q.md | c; d | * | j")
    told = "| set |  | x |\n| --- | --- | --- |\n| c | j | 2 |\n| d | j | 3 |"
    assert f"\n\n{told}\n\n" in excerpts.filled(several, tmp_path)
    with pytest.raises(ValueError, match="has no row i"):
        excerpts.filled(several.replace("| j", "| i"), tmp_path)
    for wrong in ("Last | F1", "Absent | F1", "In short | P@1"):
        with pytest.raises(ValueError, match=r"the (page|table) .*has no"):
            excerpts.filled(document.replace("In short | F1", wrong), tmp_path)


def test_an_experiment_is_a_cell_with_its_own_figures_and_arrays(tmp_path, monkeypatch):
    class System:
        version = "1"

        def __init__(self, params, threads):
            self.power = params["power"]

        def experiment(self, folder):
            numbers = np.load(folder / "numbers.npy")
            return {"sum": int((numbers**self.power).sum())}, {"numbers": numbers}

    def make(folder: Path) -> dict:
        np.save(folder / "numbers.npy", np.arange(4))
        return {"checksum": "of four"}

    folder = sets.prepare("four", tmp_path, make)
    assert sets.described(sets.prepare("four", tmp_path)) == {"checksum": "of four"}  # made once
    monkeypatch.setitem(sys.modules, "systems.squares", types.SimpleNamespace(System=System))
    job = {"data": str(folder), "out": str(tmp_path / "cell"), "module": "squares"}
    job |= {"params": {"power": 2}, "threads": 1}
    (tmp_path / "job.json").write_text(json.dumps(job))
    measure.main(str(tmp_path / "job.json"))
    figures = json.loads((tmp_path / "cell.json").read_text())
    assert figures["sum"] == 14
    assert min(figures["train_s"], figures["memory_mib"]) >= 0
    assert np.load(tmp_path / "cell.npz")["numbers"].tolist() == [0, 1, 2, 3]
