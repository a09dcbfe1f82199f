"""The parameters of `MetaRanker`: what "auto" means, the sizes by which a fit decides what to do, and checks.

| parameter of `MetaRanker` | what "auto" decides by | where |
| --- | --- | --- |
| `shortlister` | labels, rows, terms, effort | `choose_shortlister` |
| `features` | labels, rows, density, texts, shortlisters, effort | `choose_features` |
| `ranker` | shortlisted or not; pairs; effort; cross-validation | `choose_ranker` |
| `threshold` | cross-validation, for each metric | `_choose` in `metarank.thresholds.learned_thresholds` |
| `language` | what most words of the texts are of | `chosen_language` in `metarank.model.fitting.encoding` |
| `propensity_weight` | shortlisted; nDCG@5, PSP@5 of held-out rows | `metarank.model.fitting.judge` |

The sizes below decide which rows a fit uses and how it judges its ranker. The class of a source or ranker
decides what "auto" means for its own parameters, and `metarank.scorers.crossfit` how many parts nested folds
have. `MetaRanker.choices_` tells what was chosen and why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from metarank._util.languages import check_language
from metarank._util.parameters import check_flag, check_integer, check_random_state, check_real
from metarank._util.progress import check_verbose, note
from metarank._util.registry import SOURCES
from metarank._util.threads import resolve_n_jobs
from metarank.data.meaning import Encoder
from metarank.ranker import AutoRanker, Ranker, make_ranker
from metarank.scorers.base import LabelScorer
from metarank.thresholds import LearnedThresholds

# Up to here every label is a candidate; the table has n x L rows. Of sparse rows, such as words, proposals of
# up to 50 labels per source miss little beyond, and cost a tenth: `experiments/latency.md`.
ALL_LABELS_LIMIT = 1000
ALL_LABELS_LIMIT_OF_SPARSE = 100
# Kernel machines hold a matrix of n x n and factor it.
KERNEL_ROWS = 10_000
SVM_ROWS = 3_000
# A ridge over all labels factors a matrix of n x n, and is worth its time where rows are few.
RIDGE_ROWS = 7_000
# Beside words, more columns of vectors make a linear SVM cost more than the rest of a fit. The ridge, which
# costs no more for them, learns as much: nDCG@5 of cooking_stackexchange is .650 with the SVM and without.
DENSE_BESIDE_WORDS = 32
# Beside the ridge, a second and third label tree are worth their time where rows hold no more terms in all.
TERMS_FOR_TREES = 300_000
# Nor do they learn much from labels with a row or two, for which they cost as much. Of rows drawn from
# Wikispeedia-Links that give each label 2.8, 5.1, 9.4 and 19 rows, trees beside the ridge add .3, .4, 1.9 and
# 2.3 points of nDCG@5 on held-out rows, and lose 2.9, 1.4, .2 and 2.0 of PSP@5; with 2.0 rows
# (LLMs4Subjects-dev-en) they add .1 and 0.
ROWS_OF_LABEL_FOR_TREES = 4
# Neighbours that vote where labels are shortlisted.
VOTERS = (10, 30, 100)
# Leaves of a forest hold a value for each label: about n x L / 3 numbers per tree.
TREE_CELLS = 2_000_000
EFFORTS = ("low", "medium")

# The ranker's training table is held to this many pairs; beyond, rows are sampled by hash.
TRAINING_PAIRS = 2_000_000
# Of fewer given pairs, small trees that learn slowly order lists better. With 7 and 15 leaves: nDCG@10 of
# MQ2008 (12,000 pairs) .705 and .695; nDCG@1000 of held-out rows of yso-en (1.8 million) .820 and .826.
GIVEN_PAIRS = 200_000
# Of fewer shortlisted pairs, a linear model beside the trees, and what it learns of each label, order lists
# better: nDCG@5 of rows held out of 300 questions of cooking_stackexchange .522, of trees alone .507; of
# 1,000 questions (30,000 pairs) .591 and .590.
FEW_PAIRS = 20_000
# Lists of points, one for each label and fold, are held to fewer: to a choice among several rankers.
POINT_PAIRS = 500_000
# And that of the thresholds to this many, with low effort to fewer, but to no fewer than those of so many
# rows, which guarantees need, unless these are more than the last number of pairs.
THRESHOLD_PAIRS = 200_000
FEWER_THRESHOLD_PAIRS = 15_000
LEAST_THRESHOLD_ROWS = 500
MOST_THRESHOLD_PAIRS = 500_000
# With shortlists, held-out rows beyond these add nothing that is worth the fits without their folds: so many
# rows, or fewer if they have so many relevant pairs, and a least number of rows in any case.
ENOUGH_ROWS = 4_000
ENOUGH_RELEVANT_PAIRS = 20_000
LEAST_RANKED_ROWS = 1_000
# With low effort so many times fewer, and no more of a fold than that.
LOW_LEARNS_LESS = 2
# Models that "pointwise" averages with low effort.
FEWER_MODELS = 2
# Fewer rows say too little of nDCG@5 to trade it for PSP@5, and of which candidates to drop.
ROWS_FOR_PROPENSITY = 100
# Up to so many pairs rows are described anew without each two folds, for the ranker to be judged.
NESTED_PAIRS = 300_000
# Where labels are shortlisted, whose fits are the greater part of the cost, only up to so many.
NESTED_SHORTLISTED_PAIRS = 60_000
# With low effort up to so many times fewer.
LOW_NESTS_LESS = 3
# Beyond, the rows of a fold are divided into so many parts, if there are so many rows at least. Shortlisted
# rows are judged fold by fold there: a ranker that learned from a fold's rows alone is too much the worse.
INNER_PARTS = 3
LEAST_INNER_ROWS = 20
# Of shortlists so many candidates a row at least are described and ranked, and more where rows have many
# labels, or where held-out rows show that more may come first: `model.cascade.wide_enough`.
LEAST_SURVIVORS = 30
SURVIVORS_PER_LABEL = 2


@dataclass(frozen=True)
class Sizes:
    """What "auto" knows of the training rows.

    Parameters
    ----------
    n_rows, n_labels : int
    is_sparse : bool
        Whether the features are.
    n_terms : int
        Features of all rows that are not zero.
    rows_of_label : float
        The mean number of rows of the labels that have any.
    dense_columns : int
        Columns of blocks of vectors and numbers.
    has_names, has_vectors, in_order : bool
        Whether labels have names over the words of the rows, and vectors in their space, and whether the
        words of the rows are known in their order.
    """

    n_rows: int
    n_labels: int
    is_sparse: bool
    n_terms: int = 0
    rows_of_label: float = np.inf
    dense_columns: int = 0
    has_names: bool = False
    has_vectors: bool = False
    in_order: bool = False

    @property
    def most_ranked_whole(self) -> int:
        """The largest number of labels of which "auto" ranks all."""
        return ALL_LABELS_LIMIT_OF_SPARSE if self.is_sparse else ALL_LABELS_LIMIT


def choose_ranker(
    ranker: str | Ranker, n_pairs: int, columns: list[str], effort: str, is_shortlisted: bool, is_given: bool
) -> Ranker:
    """The unfitted ranker; `columns` are those of classifiers, of which a linear one learns label by label.

    "auto" is "pointwise" where labels are shortlisted by the model alone, and "ensemble" where the pairs to
    learn from are few. With low effort it is "logistic" for few pairs and for lists of all labels. A choice
    by cross-validation among rankers that look at all pairs (`metarank.ranker.auto_ranker`) is for lists of
    all labels. Of lists that others scored, the better one of "listwise" and "pointwise" is taken.
    """
    if not isinstance(ranker, str):
        return clone(ranker)  # type: ignore[no-any-return]
    if ranker == "auto" and is_given:
        gentle = {"num_leaves": 7, "n_rounds": 150, "learning_rate": 0.05}
        listwise = make_ranker("listwise", **(gentle if n_pairs < GIVEN_PAIRS else {}))
        return AutoRanker(candidates=[listwise, make_ranker("pointwise")])
    if ranker == "auto" and effort == "low" and (not is_shortlisted or n_pairs < FEW_PAIRS):
        return make_ranker("logistic")
    if ranker == "auto" and is_shortlisted and n_pairs >= FEW_PAIRS:
        return make_ranker("pointwise", **({"n_models": FEWER_MODELS} if effort == "low" else {}))
    name = "ensemble" if ranker == "auto" and is_shortlisted else ranker
    return make_ranker(name, **({"label_columns": columns} if name in ("auto", "ensemble") else {}))


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to metarank."""
    return isinstance(value, str) and value == "auto"


def named_scorers() -> dict[str, Any]:
    """The scorers that can be asked for by name, as constructors."""
    return {name: entry.make() for name, entry in SOURCES.items()}


def named_shortlisters() -> dict[str, Any]:
    """The scorers that can be asked by name to propose candidates, as constructors."""
    return {entry.asked_as: entry.make() for entry in SOURCES.values() if entry.asked_as is not None}


def is_yang2012(features: Any) -> bool:
    """Whether the columns of Yang & Gopal (2012) were asked for, which are not standardised."""
    return isinstance(features, str) and features == "yang2012"


def scorers_of(parameter: str, wanted: Any) -> list[LabelScorer] | None:
    """The unfitted scorers of "features" or "shortlister", a name, a scorer, or a list of them; None for
    "auto".

    Raises
    ------
    ValueError, TypeError
        If it is anything else, or a shortlister is not a scorer that proposes.
    """
    if is_auto(wanted):
        return None
    proposes = parameter == "shortlister"
    known = named_shortlisters() if proposes else named_scorers()
    items = list(wanted) if isinstance(wanted, (list, tuple)) else [wanted]
    if not items:
        raise ValueError(f"{parameter} must name at least one scorer, got an empty list")
    for item in items:
        if isinstance(item, str) and item not in known:
            raise ValueError(f"{parameter} must be 'auto' or among {', '.join(sorted(known))}, got {item!r}")
        if not isinstance(item, (str, LabelScorer)) or (proposes and not getattr(item, "proposes", True)):
            having = " with a shortlist()" if proposes else ""
            raise TypeError(
                f"{parameter} must be 'auto', or hold names and subclasses of metarank.scorers.LabelScorer"
                f"{having}, got {item!r}"
            )
    return [known[item]() if isinstance(item, str) else item for item in items]


def choose_features(
    features: Any, sizes: Sizes, effort: str = "medium", shortlisters: Sequence[LabelScorer] = ()
) -> list[LabelScorer]:
    """The unfitted scorers whose columns describe a pair; "auto" has the classifiers among `shortlisters`,
    all of them where labels are too many to be ranked without."""
    known = named_scorers()
    if is_yang2012(features):
        return [known["neighbors"](k=10, columns="raw"), known["centroids"]()]
    if (wanted := scorers_of("features", features)) is not None:
        return wanted
    if sizes.n_labels > sizes.most_ranked_whole:
        # Who proposes a label also says how sure it is; beside it, what no proposer knows.
        near = [known["neighbors"](metrics=("cosine",)), known["centroids"](), known["prior"]()]
        kinds = {type(s) for s in shortlisters}
        near += [known[name]() for name in ["votes"] if known[name] not in kinds]
        if sizes.has_names:
            near += [known[name]() for name in ("names", "spelling") if known[name] not in kinds]
            near.append(known["name-record"]())
        near += [known["two-sided"]()] if sizes.has_vectors else []
        scorers = [*near, *shortlisters]
        note("features: " + ", ".join(type(s).__name__ for s in scorers))
        return scorers
    names = _auto_features(sizes, effort)
    names += ["names", "name-record"] if sizes.has_names else []
    names += ["label-vectors", "two-sided"] if sizes.has_vectors else []
    proposers = [s for s in shortlisters if s.is_classifier]
    note("features: " + ", ".join([*names, *(type(s).__name__ for s in proposers)]))
    return [known[name]() for name in names] + proposers


def _auto_features(sizes: Sizes, effort: str) -> list[str]:
    """Neighbours and centroids always; base classifiers while all labels are ranked and n is moderate.

    On dense features kernel machines and extra trees complement each other; on sparse ones (text)
    linear models are both the fastest and the best. Sparse X may have some columns that are not.
    """
    names = ["neighbors", "votes", "centroids", "prior"]
    if effort == "low":
        return names
    n_rows = sizes.n_rows
    if sizes.is_sparse:
        has_ridge = n_rows <= KERNEL_ROWS
        names += [] if has_ridge and sizes.dense_columns > DENSE_BESIDE_WORDS else ["linear-svm"]
        names += ["linear-ridge"] if has_ridge else []
    else:
        names += ["extra-trees"] if n_rows * sizes.n_labels <= TREE_CELLS else []
        names += ["rbf-ridge", "laplacian-ridge"] if n_rows <= KERNEL_ROWS else ["linear-svm"]
        names += ["rbf-svm"] if n_rows <= SVM_ROWS else []
    return names


def choose_shortlister(shortlister: Any, sizes: Sizes, effort: str = "medium") -> list[LabelScorer]:
    """The unfitted scorers that propose candidates; an empty list means all labels.

    "auto": neighbours remember rare labels, label trees are quick and sure of frequent ones; up to 7,000
    rows a ridge over all labels, trained on inverse propensities, and then a single tree where the rows hold
    more than 300,000 terms, and none where labels have fewer than four rows on average; names, where known,
    and where texts mention them, if their words are known in order; vectors of labels, where there are any.
    """
    if shortlister is None:
        return []
    if (wanted := scorers_of("shortlister", shortlister)) is not None:
        return wanted
    proposers, most = named_shortlisters(), sizes.most_ranked_whole
    n_labels, n_rows = sizes.n_labels, sizes.n_rows
    if n_labels <= most:
        note(f"shortlister: none, all {n_labels} labels are ranked")
        return []
    chosen: list[LabelScorer] = [proposers["neighbors"](ks=VOTERS, names=sizes.has_names)]
    ridge = n_rows <= RIDGE_ROWS and effort != "low"
    if ridge:
        chosen.append(proposers["one-vs-all"](loss="ridge"))
    if effort != "low" and not (ridge and sizes.rows_of_label < ROWS_OF_LABEL_FOR_TREES):
        chosen.append(proposers["parabel"](n_trees=1 if ridge and sizes.n_terms > TERMS_FOR_TREES else 3))
    if sizes.has_names:
        chosen += [proposers["names"](), proposers["spelling"]()]
        chosen += [proposers["mentions"]()] if sizes.in_order else []
    if sizes.has_vectors:
        chosen.append(proposers["label-vectors"]())
    compared = "no more" if n_rows <= RIDGE_ROWS else "more"
    also = "effort is low" if effort == "low" else f"{n_rows} rows {compared} than {RIDGE_ROWS}"
    note(
        f"shortlister: {' and '.join(type(s).__name__ for s in chosen)}, since {n_labels} labels are "
        f"more than {most} and {also}"
    )
    return chosen


@dataclass(frozen=True)
class FitOptions:
    """The parameters of `MetaRanker` that a fit uses, a drawn seed and a number of threads."""

    shortlister: Any
    features: Any
    ranker: Any
    threshold: str
    encoder: Any
    language: str | None
    names: bool
    propensity_weight: float | str
    shortlist_size: int
    n_folds: int
    effort: str
    labelwise: bool
    seed: int
    n_jobs: int

    @classmethod
    def of(cls, params: Mapping[str, Any], seed: int, n_jobs: int) -> FitOptions:
        """The options of parameters by name."""
        named = {name: params[name] for name in cls.__dataclass_fields__ if name in params}
        return cls(**named | {"seed": seed, "n_jobs": n_jobs})

    @property
    def standardizes(self) -> bool:
        """Whether columns are also standardised within each list; those of "yang2012" are not."""
        return not is_yang2012(self.features)


def check_parameters(params: Mapping[str, Any]) -> int:
    """Raise ValueError or TypeError unless the parameters keep their rules; return the number of threads."""
    n_jobs = resolve_n_jobs(params["n_jobs"])
    for name, low in (("n_folds", 2), ("shortlist_size", 1)):
        check_integer(name, params[name], low)
    for name in ("names", "labelwise"):
        check_flag(name, params[name])
    check_random_state(params["random_state"])
    check_verbose(params["verbose"])
    if params["effort"] not in EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(EFFORTS)}, got {params['effort']!r}")
    ranker, weight = params["ranker"], params["propensity_weight"]
    if isinstance(ranker, str):
        make_ranker(ranker)
    elif not isinstance(ranker, Ranker):
        raise TypeError(f"ranker must be a name or a Ranker, got {ranker!r}")
    if not is_yang2012(params["features"]):
        scorers_of("features", params["features"])
    if params["shortlister"] is not None:
        scorers_of("shortlister", params["shortlister"])
    if not is_auto(weight):
        check_real("propensity_weight", weight, 0, 10, "a number in [0, 10], or 'auto'")
    LearnedThresholds(params["threshold"])
    check_language(params["language"])
    if params["encoder"] is not None:
        Encoder.of(params["encoder"])
    return n_jobs


def plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as plain values. A scorer object becomes "auto", an encoder its name."""
    out = {k: v if _is_plain(v) else "auto" for k, v in params.items()}
    return out if params["encoder"] is None else out | {"encoder": Encoder.of(params["encoder"]).model}


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, (str, int, float, np.generic))
