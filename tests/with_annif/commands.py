"""The commands of a stock Annif on projects with metarank's backend, one after the other.

`python tests/with_annif/commands.py`, by a Python that has both Annif and metarank. It works in a folder of
its own, says what it runs, and ends with exit code 1 at the first answer that is wrong.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

TOPICS = {
    "bridges": ("viaducts", "river span arch girder"),
    "tunnels": ("subways", "rock shaft bore lining"),
    "harbours": ("ports", "ship quay crane cargo"),
    "railways": ("railroads", "track train signal station"),
    "canals": ("waterways", "lock barge towpath water"),
    "airports": ("aerodromes", "runway plane terminal tower"),
    "dams": ("barrages", "reservoir spillway concrete flood"),
    "roads": ("highways", "asphalt lane traffic car"),
}
COMMON = ["study", "report", "history", "construction", "region", "people", "survey"]
PROJECTS = """
[plain]
name=Plain
language=en
backend=metarank
analyzer=snowball(english)
vocab=works
limit=5
effort=low
allow_learn=true
cluster_balanced=False

[tfidf]
name=TFIDF
language=en
backend=tfidf
analyzer=snowball(english)
vocab=works
limit=8

[fused]
name=Fused
language=en
backend=ensemble
sources=tfidf,plain
vocab=works
"""


def uri(topic: str) -> str:
    return f"http://example.org/{topic}"


def vocabulary(topics: dict[str, tuple[str, str]]) -> str:
    lines = ["@prefix skos: <http://www.w3.org/2004/02/skos/core#> ."]
    for topic, (other, _) in topics.items():
        lines.append(
            f'<{uri(topic)}> a skos:Concept ; skos:prefLabel "{topic}"@en ; skos:altLabel "{other}"@en ; '
            f"skos:related <{uri('roads')}> ."
        )
    return "\n".join(lines)


def documents(n: int, seed: int) -> list[tuple[str, list[str]]]:
    rng, out = random.Random(seed), []
    for _ in range(n):
        topics = rng.sample(list(TOPICS), rng.choice([1, 2, 2]))
        words = [word for topic in topics for word in rng.choices(TOPICS[topic][1].split(), k=4)]
        words += rng.choices(COMMON, k=6) + [topic for topic in topics if rng.random() < 0.5]
        rng.shuffle(words)
        out.append((" ".join(words), [uri(topic) for topic in topics]))
    return out


def write_corpus(path: Path, rows: list[tuple[str, list[str]]]) -> None:
    path.write_text("".join(f"{text}\t{' '.join(f'<{u}>' for u in uris)}\n" for text, uris in rows))


def annif(*arguments: str, code: int = 0, given: str | None = None) -> str:
    """The output of a command, standard error first; its exit code is checked."""
    print("$ metarank annif", *arguments, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "metarank", "annif", *arguments], input=given, capture_output=True, text=True
    )
    if done.returncode != code:
        sys.exit(f"exit code {done.returncode}, expected {code}\n{done.stdout}\n{done.stderr}")
    return done.stderr + done.stdout


def check(true: bool, what: str, seen: object = "") -> None:
    if not true:
        sys.exit(f"wrong: {what}\n{seen}")


def empty_tables_of_nltk(folder: Path) -> None:
    """What NLTK's tokenizer wants of a language, without an abbreviation in it: nothing is fetched."""
    tables = folder / "tokenizers" / "punkt_tab" / "english"
    tables.mkdir(parents=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (tables / name).touch()
    os.environ["NLTK_DATA"] = str(folder)


def check_project(name: str, folder: Path) -> None:
    found = annif("suggest", name, given="the arch of a river span and its girder")
    first = found.strip().splitlines()[0].split("\t")
    check(first[0] == f"<{uri('bridges')}>" and 0 < float(first[-1]) <= 1, "the best subject", found)
    check(annif("suggest", name, given="").strip() == "", "no suggestion for an empty text")
    found = annif("eval", name, "test.tsv", "--metrics-file", "metrics.json")
    values = json.loads(Path("metrics.json").read_text())
    check(values["F1@5"] > 0.4 and values["NDCG@10"] > 0.8, "measures", values)
    annif("eval", "--jobs", "2", name, "test.tsv", "--metrics-file", "metrics-2.json")
    check(values == json.loads(Path("metrics-2.json").read_text()), "two processes give the same measures")
    for file in folder.glob("*.annif"):
        file.unlink()
    annif("index", name, str(folder))
    check(len(list(folder.glob("*.annif"))) == 3, "a file of subjects for each document")
    annif("optimize", name, "test.tsv")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def fetch(url: str, **fields: str) -> str:
    body = urllib.parse.urlencode(fields).encode() if fields else None
    with urllib.request.urlopen(url, body, timeout=60) as answer:
        return answer.read().decode()


def check_service() -> None:
    port = free_port()
    print(f"$ metarank annif run --port {port}", flush=True)
    with open("service.log", "wb") as log:
        service = subprocess.Popen(
            [sys.executable, "-m", "metarank", "annif", "run", "--host", "127.0.0.1", "--port", str(port)],
            stdout=log,
            stderr=log,
        )
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                page = fetch(f"{base}/")
                break
            except OSError:
                check(service.poll() is None, "the service runs", Path("service.log").read_text())
                time.sleep(0.5)
        else:
            sys.exit(f"the service does not answer\n{Path('service.log').read_text()}")
        check("<html" in page, "the web page", page[:200])
        for name in ("plain", "fused"):
            project = json.loads(fetch(f"{base}/v1/projects/{name}"))
            check(project["is_trained"] is True and project["modification_time"], "the project", project)
            found = json.loads(fetch(f"{base}/v1/projects/{name}/suggest", text="quay and crane", limit="2"))
            check(len(found["results"]) == 2, "as many as the limit", found)
            check(found["results"][0]["uri"] == uri("harbours"), "the best subject", found)
        body = json.dumps([{"text": "arch of a span", "subjects": [{"uri": uri("bridges")}]}])
        request = urllib.request.Request(
            f"{base}/v1/projects/plain/learn", body.encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            check(answer.status == 204, "learning", answer.status)
    finally:
        service.terminate()
        service.wait(30)


def main() -> None:
    empty_tables_of_nltk(Path("nltk_data").resolve())
    Path("projects.cfg").write_text(PROJECTS)
    early = dict(TOPICS)
    del early["dams"]
    Path("early.ttl").write_text(vocabulary(early))
    Path("works.ttl").write_text(vocabulary(TOPICS))
    rows = documents(300, 1)
    # The words of a subject that is new later: a model keeps those that training documents have.
    write_corpus(
        Path("train.tsv"),
        [
            (f"{text} dams spillway reservoir concrete" if i % 20 == 0 else text, uris)
            for i, (text, uris) in enumerate(rows)
            if uri("dams") not in uris
        ],
    )
    write_corpus(Path("more.tsv"), documents(60, 2))
    write_corpus(Path("test.tsv"), [row for row in documents(60, 3) if uri("dams") not in row[1]])
    Path("empty.tsv").write_text("")
    folder = Path("texts")
    folder.mkdir()
    for i, (text, _) in enumerate(documents(3, 4)):
        (folder / f"{i}.txt").write_text(text)

    annif("load-vocab", "works", "early.ttl")
    said = annif("list-projects")
    check("plain" in said and "fused" in said, "the list of projects", said)
    check("not trained" in annif("suggest", "plain", code=1, given="arch").lower(), "no model yet")
    check("no documents" in annif("train", "plain", "empty.tsv", code=1), "an empty corpus is refused")
    said = annif("train", "plain", "train.tsv")
    check("cluster_balanced" in said, "a setting that is not used is told of", said)
    check(
        "effort must be" in annif("train", "-b", "metarank.effort=much", "plain", "train.tsv", code=1),
        "effort",
    )
    annif("train", "--cached", "plain")
    check_project("plain", folder)

    annif("train", "tfidf", "train.tsv")
    check_project("fused", folder)

    print("a subject that no document has yet", flush=True)
    annif("load-vocab", "works", "works.ttl")
    found = annif("suggest", "-b", "metarank.limit=8", "plain", given="dams")
    check(f"<{uri('dams')}>" in found, "a new subject is suggested without a training", found)
    annif("learn", "plain", "more.tsv")
    found = annif("suggest", "plain", given="a spillway and a reservoir of concrete")
    check(f"<{uri('dams')}>" in found.splitlines()[0], "learned", found)
    annif("train", "tfidf", "train.tsv")

    said = annif("hyperopt", "plain", "test.tsv", code=1)
    check("not supported" in said.lower(), "hyperopt is refused", said)
    check_service()
    annif("clear", "plain")
    check("not trained" in annif("suggest", "plain", code=1, given="arch").lower(), "cleared")
    print("all commands did as they should")


def in_a_folder(main: Callable[[], None]) -> None:
    with tempfile.TemporaryDirectory() as work:
        os.chdir(work)
        try:
            main()
        finally:
            os.chdir("/")


if __name__ == "__main__":
    in_a_folder(main)
