"""Memory: a fit says what it will take, a budget changes no byte, threads and processes share a model."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import makers
import numpy as np
import pytest

from metarank import MetaRanker, data, load
from metarank.model import memory
from metarank.model.memory import parse_budget, plan_fit
from metarank.scorers import crossfit
from metarank.scorers.names.name_embedder import NameEmbedder
from metarank.scorers.sizes import FitSizes
from metarank.scorers.source import sources_of
from metarank.shortlist import OneVsAll, Parabel
from metarank.types.strings import PackedStrings
from metarank.types.view import CHUNK_PAIRS

SMAPS = Path("/proc/self/smaps")


def files_of(model, path) -> dict[str, bytes]:
    """What is saved, but for the budget itself."""
    model.set_params(memory_budget=None).save(path)
    return {p.name: p.read_bytes() for p in path.iterdir()}


def planned(ds, shortlisters, scorers, budget, *, rows=40, resident=0) -> memory.MemoryPlan:
    """The plan of a fit of these shortlisters and scorers."""
    return plan_fit(sizes(ds, rows), sources_of(shortlisters, scorers), budget, resident=resident)


def sizes(ds, rows=40) -> FitSizes:
    return FitSizes(
        ds.X,
        ds.Y,
        ranked_rows=rows,
        pairs_per_row=50,
        n_folds=5,
        used_folds=5,
        n_jobs=1,
    )


# --- budgets -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4GiB", 4 << 30),
        ("512 MiB", 512 << 20),
        ("1.5gib", 3 << 29),
        ("2 GB", 2_000_000_000),
        ("10k", 10_000),
        ("77", 77),
        (1 << 40, 1 << 40),
        (np.int64(5), 5),
        (None, None),
    ],
)
def test_budgets_as_people_write_them(text, size):
    assert parse_budget(text) == size


@pytest.mark.parametrize("value", ["", "much", "-4GiB", "4 GiBs", "4i", "1e9", "0", 0, -1])
def test_budgets_that_are_none(value):
    with pytest.raises(ValueError, match="memory_budget must be"):
        MetaRanker(memory_budget=value).fit(makers.dense())


@pytest.mark.parametrize("value", [True, 4.5, [1], b"4GiB"])
def test_budgets_of_another_type(value):
    with pytest.raises(TypeError, match="memory_budget must be"):
        MetaRanker(memory_budget=value).fit(makers.dense())


@pytest.mark.parametrize("shortlister", ["auto", ["parabel", "names"], OneVsAll(loss="ridge")], ids=str)
def test_a_budget_changes_no_byte(shortlister, monkeypatch, tmp_path):
    """Chunks of a few pairs, products made twice: the model and its answers are the same."""
    ds = makers.many_texts()
    options = {**makers.QUICK, "shortlister": shortlister}
    free = MetaRanker(**options).fit(ds)
    expected = free.rank(ds, k=5)
    monkeypatch.setattr(memory, "_LEAST_CHUNK_PAIRS", 60)
    tightest = memory.MemoryPlan((), chunk_pairs=60, keeps_products=False)
    monkeypatch.setattr("metarank.model.fit.plan_fit", lambda *_: tightest)
    tight = MetaRanker(**options, memory_budget=1).fit(ds)
    assert memory.prediction_chunk(1, 10) == 60
    found = tight.rank(ds, k=5)
    assert found.labels.tobytes() == expected.labels.tobytes()
    assert found.scores.tobytes() == expected.scores.tobytes()
    assert files_of(tight, tmp_path / "tight") == files_of(free, tmp_path / "free")


class _Stopped(Exception):
    pass


def _stop(*_):
    raise _Stopped


def test_what_cannot_be_had_is_refused_before_work(monkeypatch):
    monkeypatch.setattr("metarank.model.fit.tuned", _stop)
    with pytest.raises(ValueError, match=r"memory_budget must be at least about .*most of it goes to"):
        MetaRanker(**makers.QUICK, memory_budget="1MiB").fit(makers.many_labels())


def test_what_a_budget_leaves_goes_to_chunks_first_and_then_names_the_part_too_many():
    ds = makers.many_labels(400)
    ridge, tree = OneVsAll(loss="ridge"), Parabel(n_trees=50)
    pairs, sources = sizes(ds, rows=200), sources_of([ridge], [tree])
    roomy = memory._parts(pairs, sources, 0, CHUNK_PAIRS, keeps_products=True)
    least = memory._parts(pairs, sources, 0, 2000, keeps_products=False)
    whole, held = memory.MemoryPlan(roomy).peak, memory.MemoryPlan(least).peak
    assert held < whole
    assert plan_fit(pairs, sources, whole, resident=0).chunk_pairs == CHUNK_PAIRS
    plan = plan_fit(pairs, sources, (whole + held) // 2, resident=0)
    assert 2000 <= plan.chunk_pairs <= CHUNK_PAIRS
    assert not plan.keeps_products
    assert plan.peak <= (whole + held) // 2
    with pytest.raises(ValueError, match=r"goes to Parabel without folds.*take fewer trees"):
        plan_fit(pairs, sources, held - 1, resident=0)
    with pytest.raises(ValueError, match=r"what is loaded, 3\.00 GiB; load fewer rows"):
        planned(ds, [ridge], [ridge], 2 << 30, resident=3 << 30)
    assert "matrix of OneVsAll, 201 x 201" in {part.name for part in roomy}


def test_the_estimate_is_logged_before_work_and_counts_its_parts(caplog):
    with caplog.at_level(logging.INFO, logger="metarank.memory"):
        MetaRanker(**makers.QUICK).fit(makers.dense())
    said = [record.getMessage() for record in caplog.records if record.name == "metarank.memory"]
    assert [text.startswith("memory: about ") for text in said] == [True]
    ds = makers.many_labels()
    small = planned(ds, [Parabel()], [Parabel()], None)
    large = planned(ds, [Parabel()], [Parabel()], None, rows=4000)
    assert large.peak > small.peak
    assert small.peak <= sum(part.bytes for part in small.parts)


def test_chunks_cover_the_rows_once():
    for pairs in ([], [0, 0], [5, 1, 1, 9, 0, 2], [100]):
        for most in (1, 3, 1000):
            chunks = crossfit._chunks(np.array(pairs, np.int64), most)
            assert np.concatenate([np.arange(len(pairs))[c] for c in chunks]).tolist() == list(
                range(len(pairs))
            )
            assert all(np.array(pairs)[c].sum() <= most or c.stop - c.start == 1 for c in chunks)


def test_packed_strings_are_a_sequence_of_texts():
    texts = ["", "süß", "a" * 300, "日本", "\ud800"]
    packed = PackedStrings.from_state(PackedStrings.of(texts).get_state())
    assert packed == texts
    assert packed != texts[:-1]
    assert (packed[-2], packed[1:3]) == ("日本", texts[1:3])
    assert list(PackedStrings.of([])) == []
    with pytest.raises(IndexError):
        packed[5]


# --- threads and processes ---------------------------------------------------------


@pytest.mark.parametrize("maker", ["many texts", "dense"])
def test_eight_threads_share_one_model(maker, tmp_path):
    """Identical answers, from the first call on, when what is built on first use is not built yet."""
    ds = makers.MAKERS[maker]()
    fitted = makers.fitted(maker, **makers.QUICK)
    expected = [fitted.rank(ds.take(slice(i, i + 5)), k=5) for i in range(0, 40, 5)]
    fitted.save(tmp_path / "M")
    model = load(tmp_path / "M")

    def ask(i: int) -> bool:
        found = model.rank(ds.take(slice(5 * (i % 8), 5 * (i % 8) + 5)), k=5)
        want = expected[i % 8]
        return bool(np.array_equal(found.labels, want.labels) and np.array_equal(found.scores, want.scores))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(64)))
        before = memory.resident_bytes()
        assert all(pool.map(ask, range(200)))
    assert memory.resident_bytes() - before < 8 << 20


_READER = """
import sys, json
import numpy as np
from metarank import load
model = load(sys.argv[1], verify=False)
for values in model.weights_.values():
    values.sum()
print("ready", flush=True)
sys.stdin.readline()
rss = pss = 0
inside = False
for line in open("/proc/self/smaps"):
    fields = line.split()
    if "-" in fields[0] and not fields[0].endswith(":"):
        inside = line.rstrip().endswith(".npy")
    elif inside and fields[0] == "Rss:":
        rss += int(fields[1])
    elif inside and fields[0] == "Pss:":
        pss += int(fields[1])
print(json.dumps([rss, pss]), flush=True)
"""


@pytest.mark.skipif(not SMAPS.exists(), reason="needs /proc, which says what processes share")
def test_two_processes_share_one_copy(tmp_path):
    # Small arrays are read, not mapped.
    large = data.make_extreme(3000, n_features=3000, n_labels=500, seed=0)
    Parabel(n_trees=2).fit(large.X, large.Y).save(tmp_path / "M")
    command = [sys.executable, "-c", _READER, str(tmp_path / "M")]
    readers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(2)
    ]
    try:
        for reader in readers:
            assert reader.stdout.readline().strip() == "ready"
        found = []
        for reader in readers:
            reader.stdin.write("\n")
            reader.stdin.flush()
            found.append(json.loads(reader.stdout.readline()))
    finally:
        for reader in readers:
            reader.kill()
            reader.communicate()
    (rss, pss), _ = found
    assert rss > 0
    assert pss <= 0.75 * rss  # a page that two processes map counts half for each


@pytest.mark.parametrize(
    "bad", [Parabel(n_trees="many"), Parabel(loss="none"), OneVsAll(loss="none")], ids=str
)
def test_scorers_that_cannot_be_fitted_are_refused_in_their_own_words(bad):
    with pytest.raises((ValueError, TypeError), match=r"(n_trees|loss) must be"):
        MetaRanker(**makers.QUICK, shortlister=bad).fit(makers.many_labels())


def test_networks_of_names_are_part_of_the_plan():
    ds = makers.many_labels()
    without, small, large = (
        planned(ds, [], scorers, None)
        for scorers in ([Parabel()], [Parabel(), NameEmbedder(dim=8)], [Parabel(), NameEmbedder(dim=4096)])
    )
    assert without.peak < small.peak < large.peak
    assert any(part.name.startswith("NameEmbedder on all rows") for part in small.parts)
