"""Does a propensity of each pair find more of the missing links than one of each label?

python experiments/pair_propensity/run.py [--sets pydocs] [--seeds 5]

Links are hidden by three rules and ranked again among pairs without a label; nothing is chosen on them.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from metarank import Ranking, data, metrics
from metarank.data import TextVectorizer
from metarank.data.pydocs import own_labels
from metarank.metrics.propensity import inv_propensity

_HERE = Path(__file__).resolve().parent
sys.path.append(str(_HERE.parent))
from whole_page import WholePage, add_options  # noqa: E402

SETS = ("pydocs", "Wikispeedia-Links")
RULES = ("all alike", "by label", "by name")
_BESIDE = _HERE.parents[2] / "shared" / "data"
_RIDGE = 1.0
_CANDIDATES = 50
_TEST_SHARE = 5  # one row of so many


@dataclass(frozen=True)
class Links:
    """Rows that are labels themselves: `own` is the label of a row, -1 where it has none."""

    name: str
    X: sp.csr_matrix
    Y: sp.csr_matrix
    own: np.ndarray
    names: sp.csr_matrix

    @cached_property
    def cosine(self) -> np.ndarray:
        """Of rows with names of labels (n, L)."""
        return np.asarray((self.X @ self.names.T).todense())

    @cached_property
    def smoother(self) -> np.ndarray:
        """What takes targets of the ridge to its values on the same rows (n, n)."""
        K = np.asarray((self.X @ self.X.T).todense())
        return np.linalg.solve(K + _RIDGE * np.eye(len(K)), K).T

    @property
    def checksum(self) -> str:
        digest = hashlib.sha256()
        for array in (self.X.data, self.X.indices, self.Y.indptr, self.Y.indices, self.own):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def load(name: str) -> Links:
    """X of unit rows, links, and names of labels in the same words as X."""
    if name == "pydocs":
        dataset = data.load_pydocs()
        vectorizer = TextVectorizer()
        X = vectorizer.fit_transform(dataset.texts)
        names = vectorizer.transform(
            [name.replace(".", " ").replace("_", " ") for name in dataset.label_names]
        )
        return Links(name, X, _binary(dataset.Y), own_labels(dataset), sp.csr_matrix(names))
    folder = Path(os.environ.get("METARANK_DATA") or _BESIDE)
    parts = [data.load_named(name, part, data_dir=folder) for part in ("train", "test")]
    X = sp.vstack([part.X for part in parts], format="csr")
    Y = _binary(sp.vstack([part.Y for part in parts], format="csr"))
    titles = [title.split(" || ")[0] for part in parts for title in part.titles]
    place = {label: i for i, label in enumerate(parts[0].label_names)}
    own = np.array([place.get(title, -1) for title in titles], np.int32)
    words = {word: i for i, word in enumerate(parts[0].feature_names)}
    rows = [[words[w] for w in label.lower().replace("_", " ").split() if w in words] for label in place]
    weight = np.log(X.shape[0] / (1 + np.bincount(X.indices, minlength=X.shape[1])))
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    at = np.array([word for row in rows for word in row], np.int64)
    return Links(
        name, _unit(X), Y, own, _unit(sp.csr_matrix((weight[at], at, indptr), (len(rows), X.shape[1])))
    )


def _binary(Y: sp.csr_matrix) -> sp.csr_matrix:
    return sp.csr_matrix((np.ones(Y.nnz), Y.indices, Y.indptr), Y.shape)


def _unit(X: sp.csr_matrix) -> sp.csr_matrix:
    norm = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1 / np.where(norm > 0, norm, 1)) @ X)


class Evidence:
    """What is known of the pairs (n, L) once links are hidden; no row's own links are in its scores."""

    def __init__(self, links: Links, seen: sp.csr_matrix) -> None:
        fitted = np.asarray((seen.T @ links.smoother.T).T)
        leverage = np.diag(links.smoother)[:, None]
        self.seen = seen.toarray() > 0
        self.score = (fitted - leverage * self.seen) / (1 - leverage)
        self.cosine = links.cosine
        counts = self.seen.sum(axis=0)
        self.log_count = np.log1p(counts[None, :] - self.seen)
        self.back = self._linked_back(links.own)
        self.out = np.zeros_like(self.seen)
        has_own = links.own >= 0
        self.out[np.flatnonzero(has_own), links.own[has_own]] = True
        best = [
            np.argpartition(-table, _CANDIDATES, axis=1)[:, :_CANDIDATES]
            for table in (self.score, self.cosine)
        ]
        self.candidate = np.zeros_like(self.seen)
        for columns in best:
            np.put_along_axis(self.candidate, columns, True, axis=1)
        self.candidate |= self.seen | self.back
        self.candidate &= ~self.out
        # One propensity a label, by the presets of Jain et al. (2016).
        self.of_label = 1 / inv_propensity(counts, n_points=len(self.seen))

    def _linked_back(self, own: np.ndarray) -> np.ndarray:
        """Pairs (a, b) of which b, as a row, names a."""
        back = np.zeros_like(self.seen)
        row_of = np.full(self.seen.shape[1], -1)
        row_of[own[own >= 0]] = np.flatnonzero(own >= 0)
        b, a = np.nonzero(self.seen)
        kept = (own[b] >= 0) & (row_of[a] >= 0)
        back[row_of[a[kept]], own[b[kept]]] = True
        return back

    def columns(self, *tables: np.ndarray) -> np.ndarray:
        return np.column_stack([table[self.candidate] for table in tables])


def chances(evidence: Evidence) -> dict[str, np.ndarray]:
    """Of each pair without a label: the score that it is ranked by, for each model.

    P(observed) is a logistic regression over all evidence, the same for all. If p is the propensity, the odds
    of relevance of an unlabelled pair are odds(observed) * (1 - p) / p. Of pairs that are linked back, taken
    to be relevant, those observed teach p: by the label's rows alone, or by the name as well.
    """
    e = evidence
    observed = LogisticRegression(C=1.0, max_iter=500)
    inputs = e.columns(e.score, np.sqrt(np.maximum(e.cosine, 0)), e.log_count, e.back)
    observed.fit(inputs, e.seen[e.candidate])
    log_odds = observed.decision_function(inputs)
    known = e.back[e.candidate]
    out = {
        "no propensity": log_odds,
        "a label, preset": log_odds + _gain(e.of_label[np.nonzero(e.candidate)[1]]),
    }
    models = {
        "a label, by symmetry": (e.log_count,),
        "a pair, by symmetry": (e.log_count, np.sqrt(np.maximum(e.cosine, 0))),
    }
    for name, tables in models.items():
        inputs = e.columns(*tables)
        model = LogisticRegression(C=1.0, max_iter=500).fit(inputs[known], e.seen[e.candidate][known])
        out[name] = log_odds + _gain(model.predict_proba(inputs)[:, 1])
    return out


def _gain(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 0.01, 0.99)
    return np.log((1 - p) / p)


def hidden(links: Links, rule: str, seed: int) -> sp.csr_matrix:
    """The links that stay."""
    rng = np.random.default_rng(seed)
    row, label = links.Y.nonzero()
    if rule == "all alike":
        p = np.full(len(row), 0.75)
    elif rule == "by label":
        counts = np.bincount(label, minlength=links.Y.shape[1])
        p = 0.5 + 0.5 / inv_propensity(counts, n_points=links.Y.shape[0])[label]
    else:
        cosine = np.asarray(links.X[row].multiply(links.names[label]).sum(axis=1)).ravel()
        p = np.where(cosine > np.median(cosine), 0.95, 0.55)
    kept = rng.random(len(row)) < p
    return sp.csr_matrix((np.ones(int(kept.sum())), (row[kept], label[kept])), links.Y.shape)


def recovery(links: Links, seeds: int) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """(rule, model, average precision by seed, share of hidden links among as many first pairs)."""
    for rule in RULES:
        found: dict[str, list[tuple[float, float]]] = {}
        for seed in range(seeds):
            seen = hidden(links, rule, seed)
            evidence = Evidence(links, seen)
            missing = (links.Y.toarray() > 0) & ~evidence.seen
            free = ~evidence.seen[evidence.candidate]
            truth = missing[evidence.candidate][free]
            for name, values in chances(evidence).items():
                order = np.argsort(-values[free], kind="stable")[: int(missing.sum())]
                share = truth[order].sum() / missing.sum()
                found.setdefault(name, []).append((average_precision_score(truth, values[free]), share))
        for name, pairs in found.items():
            precision, share = np.array(pairs).T
            yield rule, name, precision, share


def training(links: Links, seeds: int) -> Iterator[tuple[str, str, np.ndarray]]:
    """(rule, weights of the ridge's targets, nDCG@5 of complete test rows by seed)."""
    test = np.arange(links.Y.shape[0]) % _TEST_SHARE == 0
    train = np.flatnonzero(~test)
    K = np.asarray((links.X @ links.X[train].T).todense())
    solve = np.linalg.inv(K[train] + _RIDGE * np.eye(len(train)))
    part = Links(
        links.name,
        sp.csr_matrix(links.X[train]),
        sp.csr_matrix(links.Y[train]),
        links.own[train],
        links.names,
    )
    for rule in RULES:
        found: dict[str, list[float]] = {}
        for seed in range(seeds):
            seen = sp.csr_matrix(hidden(links, rule, seed)[train])
            evidence = Evidence(part, seen)
            known = evidence.back & ~evidence.out
            targets = {
                "no propensity": evidence.seen.astype(float),
                "a label": evidence.seen / evidence.of_label,
            }
            root = np.sqrt(np.maximum(evidence.cosine, 0))
            model = LogisticRegression(C=1.0, max_iter=500)
            model.fit(np.column_stack([evidence.log_count[known], root[known]]), evidence.seen[known])
            p = model.predict_proba(
                np.column_stack([evidence.log_count[evidence.seen], root[evidence.seen]])
            )[:, 1]
            of_pair = np.zeros_like(evidence.score)
            of_pair[evidence.seen] = 1 / np.clip(p, 0.01, 1)
            targets["a pair"] = of_pair
            Y = sp.csr_matrix(links.Y[test])
            for name, target in targets.items():
                scores = K[test] @ (solve @ target)
                own = links.own[test]
                scores[np.flatnonzero(own >= 0), own[own >= 0]] = -1e9
                ranking = Ranking.from_scores(scores.astype(np.float32), 5)
                found.setdefault(name, []).append(metrics.evaluate(Y, ranking, ["nDCG@5"])["nDCG@5"])
        for name, values in found.items():
            yield rule, name, np.array(values)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help="these sets alone")
    parser.add_argument("--seeds", type=int, default=5, help="draws of the links that are hidden")
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    sets = options.sets.split(",")
    if unknown := set(sets) - set(SETS):
        parser.error(f"--sets must be among {', '.join(SETS)}, got {', '.join(sorted(unknown))}")
    whole = WholePage(options, parser, ("sets", "seeds"))
    lines = [
        "# A propensity of each pair",
        "",
        (_HERE / "findings.md").read_text().strip(),
        "",
        "## Hidden links",
        "",
    ]
    lines += [
        "| set | hidden | propensity | average precision | found of as many | above a label's by symmetry |"
    ]
    lines += ["| --- " * 6 + "|"]
    made = [load(name) for name in sets]
    for links in made:
        rows = list(recovery(links, options.seeds))
        of_label = {rule: precision for rule, name, precision, _ in rows if name == "a label, by symmetry"}
        for rule, name, precision, share in rows:
            gain = 100 * (precision - of_label[rule])
            lines.append(
                f"| {links.name} | {rule} | {name} | {_shown(100 * precision)} "
                f"| {_shown(100 * share)} | {_shown(gain)} |"
            )
    lines += ["", "## Training", "", "| set | hidden | weights of targets | nDCG@5, complete test rows |"]
    lines += ["| --- " * 4 + "|"]
    for links in made:
        for rule, name, values in training(links, options.seeds):
            lines.append(f"| {links.name} | {rule} | {name} | {_shown(100 * values)} |")
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn"))
    lines += ["", "## How it was made", ""]
    lines += [
        f"Per cent, mean and deviation over {options.seeds} draws of hidden links. Seeds 0 to "
        f"{options.seeds - 1}, Python {platform.python_version()}, {versions}. Data (sha256): "
        f"{', '.join(f'{links.name} {links.checksum[:12]}' for links in made)}.",
        "",
    ]
    whole.write("\n".join(lines))
    return 0


def _shown(values: np.ndarray) -> str:
    return f"{values.mean():.2f} ± {values.std(ddof=1):.2f}" if len(values) > 1 else f"{values.mean():.2f}"


if __name__ == "__main__":
    sys.exit(main())
