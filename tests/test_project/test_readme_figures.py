"""README.md and docs/ say of experiments what their pages say: the rows of tables, figures of sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from studies import study

ROOT = Path(__file__).parents[2]
DOCS = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
DOCS["README.md"] = (ROOT / "README.md").read_text()
Row = dict[str, str]


def page(name: str) -> str:
    return (ROOT / "experiments" / name).read_text()


def tables(text: str) -> Iterator[tuple[str, list[Row]]]:
    """(heading, rows) of each table; an empty first cell stands for the one above it."""
    heading, rows, columns = "", [], None
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if columns is None:
                columns = cells
            elif not all(cell.strip("-:") == "" and cell for cell in cells):
                cells[0] = cells[0] or rows[-1][columns[0]]
                rows.append(dict(zip(columns, cells)))
        else:
            if columns is not None:
                yield heading, rows
                rows, columns = [], None
            heading = line.lstrip("# ") if line.startswith("#") else heading


def table_of(doc: str, *columns: str) -> list[Row]:
    """The one table of a page of the documentation that has these columns."""
    (found,) = (rows for _, rows in tables(DOCS[doc]) if rows and set(columns) <= set(rows[0]))
    return found


def row_of(name: str, heading: str, first: str, column: str) -> Row:
    """The row of a page by its first cell, in the table under the heading that has the column."""
    for under, rows in tables(page(name)):
        if under == heading and rows and column in rows[0]:
            for row in rows:
                if next(iter(row.values())) == first:
                    return row
    raise AssertionError(f"{name} has no {first} under {heading}")


def test_excerpts_are_those_of_their_pages():
    with study("bench"):
        import excerpts
    for doc, text in DOCS.items():
        assert excerpts.filled(text, ROOT / "experiments") == text, doc


# The names that the rows have on the pages of experiments.
SPEED = {
    "omikuji, 3 trees": "omikuji parabel3",
    "omikuji, 1 tree": "omikuji 1 tree, collapse 5",
    "PECOS, 3 trees": "pecos default3",
    "PECOS, 1 tree": "pecos 1 tree, 16-way",
    "napkinXC, 3 trees": "napkinxc parabel3",
    "PECOS, one-vs-all": "pecos one-vs-all",
    "**metarank** `Parabel()`": "metarank Parabel",
    "`Parabel(n_trees=1, visitors=10, beam=15)`": "metarank 1 tree, visitors 10, beam 15",
    "`OneVsAll()`": "metarank OneVsAll",
    '`OneVsAll(loss="ridge")`': "metarank OneVsAll, ridge",
    "`Parabel`, 1 tree for short texts": "metarank short texts, 1 tree",
}
EXTREME = {
    "omikuji, 3 trees": "omikuji parabel3",
    "PECOS, 3 trees": "pecos default3",
    "PECOS, one-vs-all": "pecos one-vs-all",
    "**metarank**, no label names": "metaranker without names",
    "**metarank**": "metaranker with names",
}

COLUMN = {"README.md": "PECOS, one-vs-all", "thousands-of-labels.md": "rare R@5"}


@pytest.mark.parametrize(
    ("doc", "name", "names", "columns", "renamed"),
    [
        ("shortlisters.md", "shortlist_speed/results.md", SPEED, ("R@100", "batch ms"), {}),
        (
            "thousands-of-labels.md",
            "extreme/results.md",
            EXTREME,
            ("rare R@5", "micro-F1"),
            {"rare R@5": "tail R@5"},
        ),
    ],
)
def test_rows_of_tables_are_those_of_the_page(doc, name, names, columns, renamed):
    rows = table_of(doc, *columns)
    assert len(rows) > 10
    for row in rows:
        heading, contender = row["set"].split(" (")[0], names[row[""]]
        found = row_of(name, heading, contender, columns[1])
        for column, figure in list(row.items())[2:]:
            # "0.286 (0.285)": milliseconds by the clock, and by CPU.
            assert figure == found[renamed.get(column, column)].split(" (")[0], (row, column)


def test_the_table_of_the_readme_is_that_of_the_page():
    named = EXTREME | {
        "metarank, no label names": "metaranker without names",
        "metarank": "metaranker with names",
    }
    rows = table_of("README.md", "PECOS, one-vs-all")
    assert len(rows) == 5
    for row in rows:
        heading = row.pop("set (labels)").split(" (")[0]
        for system, cell in row.items():
            found = row_of("extreme/results.md", heading, named[system], "nDCG@5")
            assert cell == f"{found['nDCG@5']} / {found['PSP@5']}, {found['train s']} s"


@pytest.mark.parametrize("doc", ["README.md", "thousands-of-labels.md"])
def test_rows_of_an_earlier_state_are_named(doc):
    (kept,) = re.findall(r"measured with another state of the sources: (.*)", page("extreme/results.md"))
    older = set(kept.split(", "))
    shown = {row.get("set (labels)", row.get("set", "")).split(" (")[0] for row in table_of(doc, COLUMN[doc])}
    found = {
        (name, kind)
        for name in shown
        for kind in ("with", "without")
        if f"metaranker {kind} names on {name}" in older
    }
    (said,) = re.findall(
        r"An earlier state of metarank was measured on ([^.]*)\.", " ".join(DOCS[doc].split())
    )
    *both, one = re.split(", (?:and )?on ", said)
    one = one.removesuffix(" without label names")
    assert {(name, kind) for name in both for kind in ("with", "without")} | {(one, "without")} == found


def low_and_high(name: str, heading: str, column: str, **of: str) -> tuple[float, float]:
    """The range of a column over the rows with these cells."""
    (rows,) = (r for h, r in tables(page(name)) if h == heading and r and column in r[0])
    values = [
        float(r[column])
        for r in rows
        if r[column] and all(r[key] in cell.split("|") for key, cell in of.items())
    ]
    return min(values), max(values)


def told(doc: str, pattern: str) -> list[str]:
    """The groups of the one place of a page of the documentation that matches; blanks may be line ends."""
    (found,) = re.findall(pattern.replace(" ", r"\s+"), DOCS[doc])
    return [found] if isinstance(found, str) else list(found)


def test_label_trees_dominate_every_tree_setting_measured():
    judged = [
        (heading, row["peer"], row["dominated"])
        for heading, rows in tables(page("shortlist_speed/results.md"))
        for row in rows
        if "single (at most 0.33)" in row
    ]
    assert {verdict for *_, verdict in judged} == {"yes"}
    assert len({heading for heading, *_ in judged}) == 5  # "On four public sets and a synthetic one"
    assert {peer.split()[0] for _, peer, _ in judged} == {"omikuji", "napkinxc", "pecos"}


def test_one_vs_all_beside_that_of_pecos():
    found = {
        heading: row
        for heading, rows in tables(page("shortlist_speed/results.md"))
        for row in rows
        if row.get("peer") == "pecos one-vs-all"
    }
    assert {heading: (row["ours"], row["dominated"]) for heading, row in found.items()} == {
        "CiteULike-t-tags": ("OneVsAll, C 0.7", "yes"),
        "LLMs4Subjects-dev-en": ("OneVsAll, ridge", "yes"),
        "Wikispeedia-Links": ("beam 20", "missing: R@100"),
    }
    assert "On Wikispeedia-Links none of" in DOCS["shortlisters.md"]


def test_embeddings_are_behind_label_trees_but_on_documentation():
    sets = {
        heading: rows
        for heading, rows in tables(page("lale.md"))
        if rows and "P@5" in rows[0] and rows[0].get("") == "FastXML"
    }
    assert len(sets) > 2
    for name, rows in sets.items():
        ndcg = {row[""]: float(re.sub(r"\*| ±.*", "", row["nDCG@5"])) for row in rows}
        networks = max(ndcg[model] for model in ("ID-only", "Text-only", "Combined", "LALE"))
        assert (networks < ndcg["Parabel"]) is not name.startswith("pydocs")


def test_memory_of_the_largest_set():
    rows = next(rows for heading, rows in tables(page("cluster_large.md")) if heading == "1 and 2 workers")
    (peak,) = (r["peak MB a worker"] for r in rows if r["set"].startswith("YSO") and r["workers"] == "1")
    assert told("guarantees.md", r"peaks at ([\d,]+) MB") == [f"{int(peak):,}"]


def test_first_places_on_pydocs():
    for figure, contender in zip(
        told("thousands-of-labels.md", r"\((\S+) against (\S+)\)\."),
        ("pecos default3", "metaranker without names"),
    ):
        assert row_of("extreme/results.md", "pydocs", contender, "P@1")["P@1"] == figure


def test_the_ridge_beside_the_pipeline():
    said = r"it has (\S+) in nDCG@5 \((\S+)\), (\S+) in PSP@5 \((\S+)\) and .{,40}, (\S+) \((\S+)\)"
    figures = told("thousands-of-labels.md", said)
    rows = [
        row_of("extreme/alone.md", "LLMs4Subjects-dev-en", contender, "P@1")
        for contender in ("metarank OneVsAll, ridge", "metaranker without names")
    ]
    assert figures == [row[column] for column in ("nDCG@5", "PSP@5", "P@1") for row in rows]
