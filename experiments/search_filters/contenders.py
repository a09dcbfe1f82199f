"""The rows of the tables. What is set here was chosen on validation parts, or is a default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from titles import SETS

FILTERS = SETS[0]


@dataclass(frozen=True)
class Contender:
    """A way to make a row.

    `unseen` tells how labels known by name alone come in: "added" after the fit, or there "at fit" without a
    row; None where they cannot. `in_tables` is False of what is measured on such labels only. `rows` are as
    many rows of the training part as it learns from, None for all.
    """

    name: str
    system: str
    group: str
    params: dict[str, Any] = field(default_factory=dict, hash=False)
    unseen: Literal["added", "at fit"] | None = None
    in_tables: bool = True
    sets: tuple[str, ...] = SETS
    rows: int | None = None

    def params_on(self, set_name: str) -> dict[str, Any]:
        """Its arguments on a set."""
        of_set = {**EMBEDDERS, **LENGTHS.get(set_name, {})} if self.system == "embedder" else {}
        return {**of_set, **self.params}


# Of all embedders alike. A bag of words costs a fraction of a BiLSTM, and half of the paper's sizes a quarter
# of them; the table of encoders tells what that loses.
EMBEDDERS: dict[str, Any] = {
    "encoder": "bow",
    "subword_dim": 128,
    "hidden_dim": 128,
    "embedding_dim": 128,
    "batch_size": 256,
    "learning_rate": 0.01,
    "n_epochs": 15,
    "patience": 2,
}
# Subwords read of a text: pydocs has whole paragraphs, the others titles.
LENGTHS: dict[str, dict[str, Any]] = {"pydocs": {"max_length": 64}}

_LALE = {"combine": "lale"}

TREES = (
    Contender("FastXML", "shortlister", "trees", {"estimator": "FastXML"}),
    Contender("PfastreXML", "shortlister", "trees", {"estimator": "PfastreXML"}),
    Contender("Parabel", "shortlister", "trees", {"estimator": "Parabel"}),
    Contender("omikuji", "omikuji", "trees", {"n_trees": 3}),
)
# Trees over labels that are named alike, of labels that have few rows.
BY_NAME = tuple(
    Contender(
        f"Parabel, {what} of names",
        "shortlister",
        "trees",
        {"estimator": "Parabel", "names": names},
        sets=("LLMs4Subjects-dev-en", "pydocs"),
    )
    for what, names in (("words", "words"), ("vectors", {"combine": "text", **EMBEDDERS}))
)
RIVALS = (
    Contender("GILE-like", "embedder", "rivals", {"combine": "gile"}, unseen="added"),
    Contender("TagSpace-like", "embedder", "rivals", {"combine": "id", "loss": "warp"}),
)
FOUR = (
    Contender("ID-only", "embedder", "four", {"combine": "id"}),
    Contender("Text-only", "embedder", "four", {"combine": "text"}, unseen="added"),
    Contender("Combined", "embedder", "four", {"combine": "concat"}, unseen="added"),
    Contender("LALE", "embedder", "four", _LALE, unseen="added"),
)
PIPELINE = (
    Contender("MetaRanker, no names", "pipeline", "pipeline", {"names": False}),
    Contender("MetaRanker", "pipeline", "pipeline", {"names": True}, unseen="added"),
    Contender(
        "MetaRanker, names at fit",
        "pipeline",
        "pipeline",
        {"names": True},
        unseen="at fit",
        in_tables=False,
    ),
)
# The paper's encoder and sizes, which are the defaults of `LabelEmbedder`.
PAPER: dict[str, Any] = {
    "encoder": "bilstm",
    "subword_dim": 256,
    "hidden_dim": 256,
    "embedding_dim": 256,
    "learning_rate": 3e-3,
}
BILSTM = tuple(
    Contender(f"{of.name}, BiLSTM", "embedder", "bilstm", {**of.params, **PAPER}, sets=(FILTERS,))
    for of in FOUR
)
# Where rows are few, steps have to be smaller and more.
FEW: dict[str, Any] = {"batch_size": 32, "learning_rate": 3e-3, "n_epochs": 60, "patience": 5}
FEW_ROWS = (1000, 3000)
FEWER = tuple(
    Contender(
        f"{of.name}, {rows:,} titles", of.system, "few", {**of.params, **settings}, sets=(FILTERS,), rows=rows
    )
    for rows in FEW_ROWS
    for of, settings in ((TREES[2], {}), *((of, FEW) for of in FOUR))
)
ENCODERS = (
    Contender("LALE, CNN", "embedder", "encoders", {**_LALE, "encoder": "cnn"}, sets=(FILTERS,)),
    Contender(
        "LALE, names through ReLU",
        "embedder",
        "encoders",
        {**_LALE, "name_activation": "relu"},
        sets=(FILTERS,),
    ),
)
ALL = (*TREES, *BY_NAME, *RIVALS, *FOUR, *BILSTM, *PIPELINE, *ENCODERS, *FEWER)
