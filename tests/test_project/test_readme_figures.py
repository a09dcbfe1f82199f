"""README.md and docs/ say of experiments what their pages say: the rows of tables, figures of sentences."""

from __future__ import annotations

import re
from pathlib import Path

from charts import tables
from studies import study

ROOT = Path(__file__).parents[2]
DOCS = {path.name: path.read_text() for path in (ROOT / "docs").glob("*.md")}
DOCS["README.md"] = (ROOT / "README.md").read_text()


def page(name: str) -> str:
    return (ROOT / "experiments" / name).read_text()


def test_excerpts_are_those_of_their_pages():
    with study("bench"):
        import excerpts
    for doc, text in DOCS.items():
        assert excerpts.filled(text, ROOT / "experiments") == text, doc


def told(doc: str, pattern: str) -> list[str]:
    """The groups of the one place of a page of the documentation that matches; blanks may be line ends."""
    (found,) = re.findall(pattern.replace(" ", r"\s+"), DOCS[doc])
    return [found] if isinstance(found, str) else list(found)


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
    tables_of = [rows for heading, rows in tables(page("cluster.md")) if heading == "1 and 2 workers"]
    of_yso = [row for rows in tables_of for row in rows if row["set"].startswith("YSO")]
    (peak,) = (row["peak MB a worker"] for row in of_yso if row["workers"] == "1")
    assert told("guarantees.md", r"peaks at ([\d,]+) MB") == [f"{int(peak):,}"]
