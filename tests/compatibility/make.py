"""Save small models of this version, with what they answer: they must load, and answer so, for ever.

Run once for a release, as `python tests/compatibility/make.py`; it writes the folder of the version and
refuses to touch one that is there. It is no way to repair a test.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import makers  # noqa: E402

import metarank  # noqa: E402
from metarank import MetaRanker, MultiObjectiveRanker, data  # noqa: E402
from metarank._util.files import whole_folder  # noqa: E402
from metarank.shortlist import OneVsAll, Parabel  # noqa: E402

SMALL = {"n_folds": 2, "n_jobs": 1}


def documents(n: int = 60) -> data.Dataset:
    """Short documents of pydocs with a vocabulary and label names of their own."""
    whole = data.load_pydocs("train")
    rows = np.flatnonzero(np.asarray((whole.Y[:, :60] > 0).sum(axis=1)).ravel())[:n]
    names = whole.label_names[:60]
    labels = [[names[j] for j in whole.Y[i].indices if j < 60] for i in rows]
    return data.Dataset(texts=[whole.texts[i][:160] for i in rows], Y=labels, label_names=names)


def pipeline(**params: Any) -> Callable[[], tuple[Any, list[str]]]:
    def make() -> tuple[Any, list[str]]:
        train = documents()
        return MetaRanker(**SMALL, **params).fit(train), [
            *train.texts[:6],
            "sort an array",
            "words never seen",
        ]

    return make


def dense(**params: Any) -> Callable[[], tuple[Any, list[list[float]]]]:
    def make() -> tuple[Any, list[list[float]]]:
        train = makers.dense(60)
        return MetaRanker(**SMALL, **params).fit(train), train.X[:8].tolist()

    return make


def several_targets() -> tuple[Any, list[list[float]]]:
    train = makers.dense(60, L=3)
    ranker = MultiObjectiveRanker("label", n_rounds=8, n_jobs=1)
    return ranker.fit(train.X, train.Y.toarray()), train.X[:8].tolist()


def shortlister(kind: type) -> Callable[[], tuple[Any, list[list[float]]]]:
    def make() -> tuple[Any, list[list[float]]]:
        train = makers.sparse(60)
        return kind().fit(train.X, train.Y), train.X[:8].toarray().tolist()

    return make


def embedder() -> tuple[Any, list[str]]:
    from metarank.text import LabelEmbedder

    train = documents()
    sizes = {"vocabulary_size": 300, "subword_dim": 12, "hidden_dim": 12, "embedding_dim": 12}
    model = LabelEmbedder("lale", "bow", **sizes, n_epochs=3, n_jobs=1)
    return model.fit(train.texts, train.Y, train.label_names), [*train.texts[:6], "sort an array"]


MODELS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "pydocs": pipeline(effort="low"),
    "pydocs-shortlists": pipeline(
        effort="low", shortlister=["parabel", "neighbors", "names"], ranker="pointwise"
    ),
    "pydocs-forests": pipeline(effort="low", shortlister="pfastrexml", ranker="lambdarank"),
    "numbers": dense(features=["neighbors", "rbf-ridge", "linear-svm", "votes"], ranker="ensemble"),
    "numbers-2012": dense(features="yang2012", ranker="listnet", threshold="instance"),
    "several-targets": several_targets,
    "parabel": shortlister(Parabel),
    "one-vs-all": shortlister(OneVsAll),
    "embedder": embedder,
}


def answers(model: Any, rows: Any) -> dict[str, Any]:
    """What a model says about rows."""
    given = rows if rows and isinstance(rows[0], str) else np.array(rows, np.float32)
    if isinstance(model, MultiObjectiveRanker):
        return {"scores": model.predict(given).tolist()}
    if hasattr(model, "rank"):
        ranking = model.rank(given, k=5)
        found = {"labels": ranking.labels.tolist(), "scores": ranking.scores.tolist()}
        if isinstance(model, MetaRanker):
            found["kept"] = model.predict(given).toarray().tolist()
        return found
    found = model.shortlist(given, 3)
    (scores,) = list(found.scores.values())[:1]
    return {"labels": found.labels.tolist(), "scores": scores.tolist()}


def main() -> None:
    """Write the folder of this version."""
    target = HERE / metarank.__version__
    if target.exists():
        sys.exit(f"{target} is there: what was saved is never saved again")
    with whole_folder(target) as folder:
        for name, make in MODELS.items():
            model, rows = make()
            model.save(folder / name)
            content = {"rows": rows, "answers": answers(model, rows)}
            text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
            (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {len(MODELS)} models, {size / 2**10:.0f} KiB")


if __name__ == "__main__":
    main()
