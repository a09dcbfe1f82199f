"""Stems and stop words: what `language=` is worth, by sets of texts, and what it costs.

python experiments/language/run.py [--sets cooking_stackexchange] [--rows 2000]

Only the training parts of the sets are read. A fifth of the rows chosen is held out to judge by. One thread.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import metarank
from metarank import MetaRanker, data, metrics
from metarank.data.compressed import plain_or_compressed, raw_bytes, read_bytes
from metarank.model.fitting.encoding import chosen_language

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

_HERE = Path(__file__).parent
SEEDS = (0, 1, 2)
TAIL = 2  # training rows of the labels whose recall is "tail"
METRICS = ("P@1", "nDCG@5", "PSP@5")
COLUMNS = (*METRICS, "tail R@5", "words", "fit", "auto")
WAYS = (None, "english")
Figures = dict[str, float]


@dataclass(frozen=True)
class TextSet:
    """A set of texts: its file below the data folder, how it is read, and rows and settings of its fits."""

    file: str
    read: Callable[[Path], data.Dataset]
    rows: int
    params: dict[str, Any]


def _titles(path: Path) -> data.Dataset:
    """Titles and abstracts, from which a model learns, with the labels of a set of words by number."""
    of = data.load(path)
    return data.Dataset(texts=of.titles, Y=of.Y, label_names=of.label_names)


def _records(path: Path) -> data.Dataset:
    """Records with the names of their subjects, or the URIs of those without."""
    vocabulary = plain_or_compressed(path.with_name("vocabulary.tsv"))
    names = dict(line.split("\t")[:2] for line in _lines(vocabulary) if "\t" in line)
    rows = [line.split("\t") for line in _lines(path)]
    labels = [[names.get(uri, uri) for uri in uris.split()] for _, uris in rows]
    return data.Dataset(texts=[text for text, _ in rows], Y=labels, label_separator=None)


def _lines(path: Path) -> list[str]:
    return read_bytes(path).decode().splitlines()


SETS = {
    "LLMs4Subjects-dev-en": TextSet("xmlc/LLMs4Subjects-dev-en/train.txt.xz", _titles, 4_000, {}),
    "tib_records_en": TextSet("text/tib_records_en/train.tsv.xz", _records, 4_000, {}),
    "cooking_stackexchange": TextSet(
        "text/cooking_stackexchange/cooking.stackexchange.txt.xz",
        data.load,
        4_000,
        {"shortlister": ["neighbors", "names", "parabel"]},
    ),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"among {', '.join(SETS)}")
    parser.add_argument("--rows", type=int, default=None, help="at most, of each set")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("sets", "rows"))
    folder = Path(os.environ.get("METARANK_DATA", _HERE.parents[2] / "shared" / "data"))
    parts, inputs = [], []
    for name in options.sets.split(","):
        of = SETS[name]
        path = folder / of.file
        if not path.is_file():
            print(f"{name} is left out: {path} is not there", file=sys.stderr)
            continue
        rows = of.read(path)
        n_rows = min(of.rows, options.rows or of.rows)
        parts.append(
            f"## {name}\n\n{_described(rows, n_rows)}\n\n{_table(_measured(rows, n_rows, of.params))}"
        )
        inputs.append(f"- {path.name} of {name}: sha256 {hashlib.sha256(raw_bytes(path)).hexdigest()}")
    whole.write("\n\n".join([_HEAD, *parts, "## How it was made", _provenance(inputs)]) + "\n")
    return 0


def _measured(rows: data.Dataset, n_rows: int, params: dict[str, Any]) -> dict[str, list[Figures]]:
    """The figures of each way to take words, a division of the rows each."""
    out: dict[str, list[Figures]] = {}
    for seed in SEEDS:
        chosen = np.random.default_rng(seed).permutation(rows.n_rows)[:n_rows]
        cut = n_rows * 4 // 5
        train, held_out = (rows.take(np.sort(part)) for part in (chosen[:cut], chosen[cut:]))
        chosen_way = chosen_language(train.texts or [], train.Y, train.label_names)
        for language in WAYS:
            figures = _figures(train, held_out, language, params)
            print(f"{language}, seed {seed}: {figures}", file=sys.stderr, flush=True)
            out.setdefault(str(language), []).append(figures | {"auto": language == chosen_way})
    return out


def _figures(
    train: data.Dataset, held_out: data.Dataset, language: str | None, params: dict[str, Any]
) -> Figures:
    start = time.process_time()
    model = MetaRanker(language=language, n_jobs=1, **params).fit(train)
    seconds = time.process_time() - start
    ranking = model.rank(held_out, k=5)
    found = metrics.evaluate(held_out.Y, ranking, METRICS, inv_propensity=model.inv_propensity_)
    rare = np.bincount(train.Y.indices, minlength=train.n_labels) <= TAIL
    relevant = sp.csr_matrix(held_out.Y > 0)
    pairs = [
        (relevant[i].indices[rare[relevant[i].indices]], ranking.labels[i]) for i in range(ranking.n_rows)
    ]
    tail = sum(np.isin(own, listed).sum() for own, listed in pairs) / max(
        1, sum(len(own) for own, _ in pairs)
    )
    return {**found, "tail R@5": float(tail), "words": model.n_features_in_, "fit": seconds}


def _described(rows: data.Dataset, n_rows: int) -> str:
    text = " ".join(rows.texts[0].split())[:60] if rows.texts else ""
    return f"{n_rows:,} of {rows.n_rows:,} rows, {rows.n_labels:,} labels; the first text begins “{text}”."


def _table(measured: dict[str, list[Figures]]) -> str:
    """Means over the divisions; with stems also the difference to words and its standard error."""
    plain = measured[str(None)]
    lines = [["`language=`", *COLUMNS], ["---"] * (1 + len(COLUMNS))]
    for language, runs in measured.items():
        cells = [f"`{language!r}`" if language != "None" else "`None`"]
        for column in COLUMNS:
            values = np.array([run[column] for run in runs])
            if column == "auto":
                cells.append(f"{int(values.sum())} of {len(values)}")
            elif column == "words":
                cells.append(f"{values.mean():,.0f}")
            elif column == "fit":
                cells.append(f"{values.mean() / np.mean([run[column] for run in plain]):.2f}")
            else:
                gains = 100 * (values - [run[column] for run in plain])
                error = gains.std(ddof=1) / len(gains) ** 0.5
                more = "" if runs is plain else f" ({gains.mean():+.1f} ± {error:.1f})"
                cells.append(f"{100 * values.mean():.1f}{more}")
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _provenance(inputs: Sequence[str]) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("PyStemmer", "lightgbm", "scikit-learn"))
    return "\n".join(
        [
            *inputs,
            f"- `python experiments/language/run.py`; seeds {', '.join(map(str, SEEDS))} choose the rows and "
            "those held out; the model's own is 0",
            f"- {platform.machine()}, cores shared with other work, Python {platform.python_version()}, "
            f"{versions}, metarank {metarank.__version__}",
        ]
    )


_HEAD = f"""# Words by their stems

`MetaRanker(language=)`: words of texts and of label names as they are (`None`), or by their stems and without
stop words (`english`). Default settings, on cooking_stackexchange with shortlisters neighbours, names and
Parabel. Times 100, means over {len(SEEDS)} divisions; in brackets the difference to words as they are, with
its standard error over the divisions. *tail R@5*: share of the relevant pairs of labels with at most {TAIL}
training rows that are among the first five. *words*: distinct terms. *fit*: CPU time, as a ratio. *auto*: how
often `language="auto"` takes this, of {len(SEEDS)}."""


if __name__ == "__main__":
    sys.exit(main())
