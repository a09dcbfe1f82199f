"""experiments/neighbors: figures of every index and kind of votes, and the page that holds them."""

from __future__ import annotations

from studies import EXPERIMENTS, study

from metarank.data import make_extreme
from metarank.types.dense_index import HnswIndex

FOLDER = EXPERIMENTS / "neighbors"

with study("neighbors"):
    import indexes
    import votes
    from neighbor_tables import write


def test_the_page_is_what_its_sources_say():
    page = (FOLDER / "results.md").read_text()
    assert write([], {}).split("\n\n## How it was made")[0] in page
    for size in indexes.SIZES:
        assert f"| {size:,} | **HNSW** |" in page


def test_figures_of_a_small_set():
    before = HnswIndex.BREADTH
    figures = indexes.measure(1_500, 40)
    assert before == HnswIndex.BREADTH
    assert [f["index"] for f in figures] == ["flat", *["hnsw"] * 3, *["ivfpq"] * 3]
    assert sum(f["default"] for f in figures) == 3
    assert figures[0]["recall"] == 1
    assert all(0.8 <= f["recall"] <= 1 for f in figures)
    page = write(figures, {})
    assert page.count("| 1,500 | ") == 7


def test_recall_of_votes():
    data = make_extreme(120, 60, 30, nnz_per_row=10, seed=0)
    figures = votes.measure(data)
    assert [f["votes"] for f in figures[:3]] == ["binary", "inverse-propensity", "half of each"]
    for f in figures:
        found = [everything for everything, _ in f["recall"]]
        assert found == sorted(found)
        assert found[-1] == 1  # of 30 labels 100 are all
    assert "made: 120 rows" in write([], {"made": (120, 30, figures)})
