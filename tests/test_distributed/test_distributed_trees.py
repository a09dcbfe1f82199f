"""The trees of an ensemble are tasks of their own on a cluster, and the model is that of a local fit."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import makers
import pytest
from clusters import cluster, digest, kill_at, preloading

pytest.importorskip("distributed")

from dask.sizeof import sizeof
from sklearn.base import clone

from metarank import MetaRanker
from metarank.distributed import DaskMetaRanker, tasks
from metarank.distributed.dask_stages import DaskStages
from metarank.distributed.results import KeptResults
from metarank.persist import register
from metarank.shortlist import FastXML, Parabel, PfastreXML, XReg

LOW = {"effort": "low", "n_folds": 2, "n_jobs": 1}


def names(folder: Path, stage: str) -> list[str]:
    """Results of a stage that are kept."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(f"{stage}-"))


@pytest.mark.check
def test_same_model_with_any_number_of_workers(tmp_path):
    """A forest in blocks, label trees one by one, what re-ranks beside them."""
    train = makers.many_labels(80)
    scorers = [PfastreXML(n_trees=11, max_leaf=5), XReg(n_trees=4, max_leaf=30, tail="auto")]
    settings = {**LOW, "features": scorers, "shortlister": Parabel(n_trees=3, max_leaf=40, calibrate=True)}
    local = digest(MetaRanker(**settings).fit(train), tmp_path / "local")
    for n_workers in (1, 2, 3, 4):
        with cluster(n_workers) as client:
            model = DaskMetaRanker(client, resume=tmp_path / f"kept{n_workers}", **settings).fit(train)
        assert digest(model, tmp_path / f"{n_workers}") == local
        kept = tmp_path / f"kept{n_workers}"
        # Two folds and all rows; of 5, 5 and 1 trees, and of one each.
        by_class = Counter(name.split("-")[2] for name in names(kept, "fit-trees"))
        assert by_class == {"PfastreXML": 9, "XReg": 12, "Parabel": 9}
        by_class = Counter(name.split("-")[2] for name in names(kept, "fit-rest"))
        assert by_class == {"PfastreXML": 3, "XReg": 3, "Parabel": 3}
        assert not names(kept, "fit-all")


@pytest.mark.check
def test_fewer_trees_than_workers_and_a_single_one(tmp_path):
    """An ensemble of one block is one task, as it was."""
    settings = {
        **LOW,
        "features": [FastXML(n_trees=3, max_leaf=5), Parabel(n_trees=1), "extra-trees"],
        "shortlister": XReg(n_trees=2),
    }
    train = makers.many_labels(60)
    local = digest(MetaRanker(**settings).fit(train), tmp_path / "local")
    with cluster(4) as client:
        model = DaskMetaRanker(client, resume=tmp_path / "kept", **settings).fit(train)
    assert digest(model, tmp_path / "distributed") == local
    assert {name.split("-")[2] for name in names(tmp_path / "kept", "fit-trees")} == {"XReg", "ExtraTrees"}


BEGUN: list[tuple[str, int]] = []


class TellingTrees(Parabel):
    """Tells of every tree, and on how many rows it is grown."""

    def _grow(self, view, *args):
        BEGUN.append(("tree", view.n_rows))
        return super()._grow(view, *args)


class TellingScorer(makers.MeanFeature):
    """Tells of every fit."""

    def fit(self, view, *, n_jobs=1):
        BEGUN.append(("scorer", view.n_rows))
        return super().fit(view, n_jobs=n_jobs)


@pytest.mark.check
def test_fits_on_all_rows_wait_for_the_trees_that_training_rows_are_described_by():
    train = makers.many_labels(60)
    BEGUN.clear()
    settings = {**LOW, "n_folds": 3, "features": [TellingScorer(), "prior"], "ranker": "binary"}
    with cluster(1) as client:
        DaskMetaRanker(client, **settings, shortlister=TellingTrees(max_leaf=40)).fit(train)
    held_out = [i for i, (what, n_rows) in enumerate(BEGUN) if what == "tree" and n_rows < 60]
    on_all = [i for i, (_, n_rows) in enumerate(BEGUN) if n_rows == 60]
    assert len(held_out) >= 6
    assert len(on_all) == 4
    assert max(held_out) < min(on_all)


@register
class SlowTrees(Parabel):
    """Tells of every tree that is grown, and at one of them works long enough to be killed, once."""

    def __init__(self, *, folder: str = "", n_trees: int = 3, max_leaf: int = 100) -> None:
        super().__init__(n_trees=n_trees, max_leaf=max_leaf)
        self.folder = folder

    def _grow(self, view, sample_weight, first, count, n_jobs):
        if self.folder:
            log = Path(self.folder) / "grown"
            with log.open("a") as f:
                f.write(f"{view.n_rows} {int(view.rows.sum())} {first} {count}\n")
            if len(log.read_text().splitlines()) > 4:
                with suppress(FileExistsError):
                    with (Path(self.folder) / "pid").open("x") as f:
                        f.write(str(os.getpid()))
                    time.sleep(120)
        return super()._grow(view, sample_weight, first, count, n_jobs)


def without_marks(model: MetaRanker) -> MetaRanker:
    """As saved, the scorer's folder left out."""
    for scorer in (model.shortlister, *model.shortlisters_):
        scorer.folder = ""
    return model


@pytest.mark.check
@pytest.mark.parametrize("is_kept", [False, True])
def test_a_worker_killed_while_trees_grow_repeats_only_what_was_lost(is_kept, tmp_path):
    train = makers.many_labels(60)
    settings = {**LOW, "features": ["neighbors"]}
    local = MetaRanker(**settings, shortlister=SlowTrees(max_leaf=40)).fit(train)
    marks = tmp_path / "marks"
    marks.mkdir()
    resume = tmp_path / "kept" if is_kept else None
    with cluster(2, **preloading()) as client:
        killer = kill_at(marks / "pid")
        slow = SlowTrees(folder=str(marks), max_leaf=40)
        model = DaskMetaRanker(client, resume=resume, **settings, shortlister=slow).fit(train)
        killer.join()
    found = without_marks(model.to_local())
    assert digest(found, tmp_path / "distributed") == digest(local, tmp_path / "local")
    assert (marks / "pid").read_text()
    grown = Counter((marks / "grown").read_text().splitlines())
    # Each tree of two folds and of all rows: once, and again what was under way or held by the dead alone.
    assert len(grown) == 9
    assert max(grown.values()) == 2
    again = sum(grown.values()) - 9
    assert again == 1 if is_kept else 1 <= again < 6


@pytest.mark.check
def test_a_damaged_block_of_trees_is_made_again_and_no_other(tmp_path):
    train = makers.many_labels(60)
    kept = tmp_path / "kept"
    settings = {**LOW, "features": [PfastreXML(n_trees=7, max_leaf=5)]}
    local = digest(MetaRanker(**settings).fit(train), tmp_path / "local")
    with cluster(2) as client:
        DaskMetaRanker(client, resume=kept, **settings).fit(train)
    before = {path.name: path.stat().st_mtime_ns for path in kept.iterdir()}
    lost = {names(kept, stage)[0] for stage in ("fit-trees", "fit-rest")}
    for name in lost:
        next((kept / name).glob("*.npy")).write_bytes(b"")
    for path in kept.iterdir():  # so that the trees are asked for again
        if path.name.startswith(("propose-", "describe-", "rank-")):
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
    with cluster(3) as client:
        again = DaskMetaRanker(client, resume=kept, **settings).fit(train)
    assert digest(again, tmp_path / "again") == local
    after = {path.name: path.stat().st_mtime_ns for path in kept.iterdir()}
    same = [n for n in before if n.startswith("fit-") and after[n] == before[n]]
    assert set(same) == {n for n in before if n.startswith("fit-")} - lost


@pytest.mark.parametrize(
    "scorer",
    [FastXML(n_trees=2, max_leaf=5), Parabel(n_trees=2, max_leaf=2, calibrate=True), PfastreXML(n_trees=2)],
    ids=lambda scorer: type(scorer).__name__,
)
def test_what_is_kept_of_trees_is_all_there_is_to_them(scorer, tmp_path):
    view = makers.training_set(makers.sparse().X, makers.sparse().Y).view()
    kept = KeptResults(tmp_path / "kept")
    made = {"trees": scorer.fit_trees(view, 0, 2), "rest": scorer.fit_rest(view)}
    for key, result in made.items():
        kept.get(key, lambda result=result: result)
    found = {key: kept.get(key, lambda: pytest.fail("not kept")) for key in made}
    joined = scorer.joined([found["trees"]], found["rest"])
    whole = clone(scorer).fit(view)
    assert digest(joined, tmp_path / "joined") == digest(whole, tmp_path / "whole")


def test_trees_are_let_go_of_when_they_are_joined(tmp_path):
    rows = makers.many_labels(60)
    train = makers.training_set(rows.X, rows.Y)
    scorer = Parabel(n_trees=4, max_leaf=40)
    with cluster(2) as client:
        stages = DaskStages(client, train, 1, task_n_jobs=1, folder=None)
        future = stages._fit_by_trees(scorer, None, scorer.blocks())
        fitted = future.result()
        for _ in range(100):
            held = {key for key, workers in client.who_has().items() if workers}
            if len(held) <= 2:
                break
            time.sleep(0.05)
        assert held == {stages._data.key, future.key}
        stages.close()
    assert fitted.hierarchy_.n_trees == 4


def test_sizes_of_trees_count_their_arrays():
    rows = makers.many_labels(60)
    block = Parabel(max_leaf=40).fit_trees(makers.training_set(rows.X, rows.Y).view(), 0, 1)
    assert tasks.fit_trees is not None  # which registers the sizes
    arrays = sum(array.nbytes for array in block.arrays.values())
    assert arrays <= sizeof(block) < arrays + 4096
