"""Large vocabularies and long documents: time and memory, and what is lost where only a part is read.

python experiments/long_documents/run.py [--concepts 200000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options  # noqa: E402

from metarank import MetaRanker, metrics  # noqa: E402
from metarank.data import TextVectorizer, read_corpus, read_vocabulary  # noqa: E402

_HERE = Path(__file__).parent
_PARTS = (None, "head:2500", "sample:2500", "head:20000", "sample:20000")
_SIZES = (250_000, 2_500_000, 50_000_000)  # characters: 100 pages, 1000 pages, and more
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--concepts", type=int, default=200_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--task", help=argparse.SUPPRESS)  # one measurement in a process of its own
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    if options.task is not None:
        print(json.dumps(task(json.loads(options.task))))
        return 0
    page = WholePage(options, parser, narrowed_by=("concepts", "repeats"))
    archaeology = Path(os.environ.get("METARANK_DATA", "data")) / "annif" / "archaeology"
    chapters = [*vocabularies(options.concepts, options.repeats)] if _has(archaeology) else []
    if _has(archaeology):
        chapters += [*documents(archaeology, options.repeats), *quality(archaeology)]
    else:
        print(f"left out: there is no {archaeology}", file=sys.stderr)
    names = ("metarank-ltr", "pyoxigraph", "rdflib", "scikit-learn", "numpy")
    said = ", ".join(f"{name} {found}" for name in names if (found := _version(name)))
    page.write("\n".join([_HEAD.format(python=platform.python_version(), versions=said), *chapters]) + "\n")
    return 0


def _has(folder: Path) -> bool:
    return folder.is_dir()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def measured(repeats: int, **what: Any) -> list[dict[str, float]]:
    """What a task says, each time in a process of its own."""
    command = [sys.executable, __file__, "--task", json.dumps(what)]
    return [
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout) for _ in range(repeats)
    ]


def task(what: dict[str, Any]) -> dict[str, float]:
    """Seconds and MiB of a task, in this process."""
    before, started = _mebibytes(), time.monotonic()
    size = 0
    if what["kind"] == "vocabulary":
        size = len(read_vocabulary(what["path"], "en"))
    elif what["kind"] == "rdflib":
        import rdflib

        graph = rdflib.Graph()
        graph.parse(what["path"], format=what["syntax"])
        size = len(graph)
    else:
        text = Path(what["path"]).read_text()
        text = (text * (what["size"] // len(text) + 1))[: what["size"]]
        TextVectorizer().fit_transform(["what is loaded with", "the first texts"])
        before, started = _mebibytes(), time.monotonic()
        size = TextVectorizer(text_part=what["part"]).fit_transform([text, "one more"]).nnz
    return {"s": time.monotonic() - started, "MiB": _mebibytes(), "more": _mebibytes() - before, "size": size}


def _mebibytes() -> float:
    """The greatest memory of the process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def vocabularies(n: int, repeats: int) -> list[str]:
    lines = [
        f"## A vocabulary of {n:,} concepts",
        "",
        "Made (seed 0): two prefLabels and two altLabels of each in two languages, a broader and a related",
        "concept, a notation. `read_vocabulary` makes a table of labels of it, in one language; rdflib",
        f"a graph, of which nothing is made yet, and of {n // 10:,} concepts.",
        "",
        "| read by | file | MB | s | peak MiB |",
        "| --- | --- | --- | --- | --- |",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for syntax, writer in {"ttl": turtle, "rdf": xml, "jsonld": json_ld}.items():
            path = Path(folder) / f"made.{syntax}"
            writer(path, n)
            found = measured(repeats, kind="vocabulary", path=str(path))
            assert found[0]["size"] == n
            lines.append(_row("read_vocabulary", path, found))
            if syntax == "ttl" and _version("rdflib"):
                few = path.with_name("few.ttl")
                turtle(few, n // 10)
                for name, kind in (("read_vocabulary, a tenth", "vocabulary"), ("rdflib, a tenth", "rdflib")):
                    found = measured(repeats, kind=kind, path=str(few), syntax="turtle")
                    lines.append(_row(name, few, found))
            print(lines[-1], file=sys.stderr)
    return [*lines, ""]


def _row(name: str, path: Path, found: list[dict[str, float]]) -> str:
    cells = [f"{median(one[key] for one in found):.{digits}f}" for key, digits in (("s", 1), ("MiB", 0))]
    return f"| {name} | {path.suffix} | {path.stat().st_size / 1e6:.0f} | {' | '.join(cells)} |"


def _related(n: int) -> list[int]:
    rng = random.Random(0)
    return [rng.randrange(n) for _ in range(n)]


def turtle(path: Path, n: int) -> None:
    with path.open("w") as f:
        f.write(f"@prefix skos: <{_SKOS}> .\n@prefix c: <http://example.org/p> .\n")
        for i, other in enumerate(_related(n)):
            f.write(
                f"c:{i} a skos:Concept ;\n"
                f'  skos:prefLabel "concept {i} of things"@en , "Begriff {i} der Dinge"@de ;\n'
                f'  skos:altLabel "other name {i}"@en , "anderer Name {i}"@de ; skos:notation "{i}" ;\n'
                f"  skos:related c:{other} {f'; skos:broader c:{i // 8} ' if i else ''}.\n"
            )


def xml(path: Path, n: int) -> None:
    with path.open("w") as f:
        f.write(f'<?xml version="1.0"?>\n<rdf:RDF xmlns:rdf="{_RDF}" xmlns:skos="{_SKOS}">\n')
        for i, other in enumerate(_related(n)):
            uri = "http://example.org/p"
            broader = f'<skos:broader rdf:resource="{uri}{i // 8}"/>' if i else ""
            f.write(
                f'<skos:Concept rdf:about="{uri}{i}"><skos:prefLabel xml:lang="en">concept {i} of things'
                f'</skos:prefLabel><skos:prefLabel xml:lang="de">Begriff {i} der Dinge</skos:prefLabel>'
                f'<skos:altLabel xml:lang="en">other name {i}</skos:altLabel><skos:altLabel xml:lang="de">'
                f"anderer Name {i}</skos:altLabel><skos:notation>{i}</skos:notation>"
                f'<skos:related rdf:resource="{uri}{other}"/>{broader}</skos:Concept>\n'
            )
        f.write("</rdf:RDF>\n")


def json_ld(path: Path, n: int) -> None:
    with path.open("w") as f:
        f.write(f'{{"@context": {{"skos": "{_SKOS}", "c": "http://example.org/p"}}, "@graph": [\n')
        for i, other in enumerate(_related(n)):
            own: dict[str, Any] = {"@id": f"c:{i}", "@type": "skos:Concept", "skos:notation": str(i)}
            for key, english, german in (
                ("skos:prefLabel", f"concept {i} of things", f"Begriff {i} der Dinge"),
                ("skos:altLabel", f"other name {i}", f"anderer Name {i}"),
            ):
                values = (("en", english), ("de", german))
                own[key] = [{"@language": spoken, "@value": value} for spoken, value in values]
            own["skos:related"] = {"@id": f"c:{other}"}
            if i:
                own["skos:broader"] = {"@id": f"c:{i // 8}"}
            f.write(json.dumps(own) + (",\n" if i < n - 1 else "\n"))
        f.write("]}\n")


def documents(archaeology: Path, repeats: int) -> list[str]:
    files = sorted((archaeology / "fulltext").glob("*.txt"))
    lines = [
        "## Long documents: time and memory",
        "",
        "The archaeology full texts, one after another until a length is reached: `TextVectorizer` of one",
        "such document. 250,000 characters are 100 pages. MiB are those beyond the text and the libraries.",
        "The texts have 37,862 characters together, so that long documents repeat them.",
        "",
        "| read | " + " | ".join(f"{size:,} characters: s | MiB" for size in _SIZES) + " |",
        "| --- |" + " --- | --- |" * len(_SIZES),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        path.write_text("\n".join(file.read_text(encoding="utf-8-sig") for file in files))
        for part in (None, "head:20000", "sample:20000"):
            cells = []
            for size in _SIZES:
                found = measured(repeats, kind="document", path=str(path), size=size, part=part)
                cells += [
                    f"{median(run['s'] for run in found):.3f}",
                    f"{median(r['more'] for r in found):.0f}",
                ]
            lines.append(f"| {part or 'all'} | {' | '.join(cells)} |")
            print(lines[-1], file=sys.stderr)
    return [*lines, ""]


def quality(archaeology: Path) -> list[str]:
    """Full texts ranked by models of titles, which differ in the part of a text that they read."""
    warnings.simplefilter("ignore")
    vocabulary = read_vocabulary(archaeology / "yso-archaeology.ttl", "fi")
    corpora = (read_corpus(archaeology / name, vocabulary) for name in ("documents.tsv", "fulltext"))
    titles, texts = (corpus.take(corpus.Y.getnnz(axis=1) > 0) for corpus in corpora)
    checksum = hashlib.sha256((archaeology / "documents.tsv").read_bytes()).hexdigest()[:16]
    lengths = sorted(len(text) for text in texts.texts or ())
    lines = [
        "## Long documents: what a part is worth",
        "",
        f"A model of the {titles.n_rows:,} archaeology titles (sha256 {checksum}) ranks the subjects of the",
        f"{texts.n_rows} full texts, {lengths[0]:,} to {lengths[-1]:,} characters long, the middle one",
        f"{lengths[len(lengths) // 2]:,}. Subjects that the vocabulary lacks count as missed. The sample is",
        "small: no difference here tells which part to read.",
        "",
        "| read | nDCG@10 | R@10 |",
        "| --- | --- | --- |",
    ]
    # All titles are shorter than the parts, so that models of every part are the same.
    assert max(map(len, titles.texts or ())) <= 2500
    model = MetaRanker(n_jobs=1, random_state=0).fit(titles)
    for part in _PARTS:
        model.encoder_.vectorizer.text_part = part
        found = metrics.evaluate(texts, model.rank(texts.texts, 10), ["nDCG@10", "R@10"])
        lines.append(f"| {part or 'all'} | {100 * found['nDCG@10']:.1f} | {100 * found['R@10']:.1f} |")
        print(lines[-1], file=sys.stderr)
    return [*lines, ""]


_HEAD = """# Large vocabularies and long documents

Written by `python experiments/long_documents/run.py`. One thread, medians of three runs in processes of their
own, on cores shared with other work; Python {python}, {versions}.
"""

if __name__ == "__main__":
    sys.exit(main())
