"""What is measured, in one place: the sets, the peers' settings and ours."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any, Literal

K = 100  # length of the predicted lists
SINGLES = 200  # points predicted one by one
SEED = 0


@dataclass(frozen=True)
class Setting:
    """One way to run a system; `sets` (patterns) says where, `kind` what it is compared with."""

    system: str
    name: str
    params: dict[str, Any] = field(default_factory=dict, hash=False)
    kind: Literal["tree", "flat"] = "tree"
    sets: tuple[str, ...] = ("*",)

    def runs_on(self, set_name: str) -> bool:
        return any(fnmatch(set_name, pattern) for pattern in self.sets)

    def __str__(self) -> str:
        return f"{self.system} {self.name}"


REFERENCE = "synthetic-reference"
# Repetitions of the sets; one where a single run takes minutes.
SETS = {
    "LLMs4Subjects-dev-en": 3,
    REFERENCE: 3,
    "CiteULike-t-tags": 3,
    "Wikispeedia-Links": 3,
    "YSO-FinnaTitles-27K": 1,
}
NATURAL = ("LLMs4Subjects-dev-en", "CiteULike-t-tags", "Wikispeedia-Links")
# Not at the largest set: napkinXC, which reads its trees from disk on each call, and most of our settings.
NOT_THE_LARGEST = (REFERENCE, *NATURAL)

# parabel3: 3 trees, balanced binary splits, at most 100 labels a leaf, beam 10, C = 1, weights below 0.1
# dropped; the peers' defaults but for napkinXC's. default3: PECOS with its 16-way splits.
PEERS = (
    Setting("omikuji", "parabel3", {"n_trees": 3}),
    Setting("omikuji", "1 tree, collapse 5", {"n_trees": 1, "collapse_every_n_layers": 5}),
    Setting("pecos", "default3", {"n_trees": 3, "nr_splits": 16}),
    Setting("pecos", "1 tree, 16-way", {"n_trees": 1, "nr_splits": 16}),
    Setting("pecos", "parabel3", {"n_trees": 3, "nr_splits": 2}),
    Setting(
        "napkinxc",
        "parabel3",
        {"ensemble": 3, "loss": "l2", "liblinear_c": 1.0, "tree_search_type": "beam"},
        sets=NOT_THE_LARGEST,
    ),
    Setting("pecos", "one-vs-all", {"n_trees": 0}, kind="flat", sets=NATURAL),
)

SHORT_TEXTS = {
    "estimator": "Parabel",
    "max_leaf": 200,
    "C": 0.5,
    "max_epochs": 12,
    "visitors": 0,
    "link_power": 3,
    "prune": 0.05,
}

# `params` are the class in metarank.shortlist, as "estimator", and its arguments.
# More visitors cost training time and pay in precision; a wider beam costs prediction time and pays in
# recall, as does a light path.
OURS = (
    Setting("metarank", "Parabel", {"estimator": "Parabel"}),
    Setting("metarank", "beam 20", {"estimator": "Parabel", "beam": 20}, sets=NOT_THE_LARGEST),
    Setting(
        "metarank",
        "visitors 10, beam 20",
        {"estimator": "Parabel", "visitors": 10, "beam": 20},
        sets=NOT_THE_LARGEST,
    ),
    Setting(
        "metarank",
        "visitors 30, beam 20",
        {"estimator": "Parabel", "visitors": 30, "beam": 20},
        sets=NOT_THE_LARGEST,
    ),
    Setting(
        "metarank",
        "light path, visitors 10, beam 20",
        {"estimator": "Parabel", "path_weight": 0.3, "visitors": 10, "beam": 20},
        sets=NOT_THE_LARGEST,
    ),
    Setting(
        "metarank",
        "2 trees, light path, visitors 10, beam 20",
        {"estimator": "Parabel", "n_trees": 2, "path_weight": 0.3, "visitors": 10, "beam": 20},
        sets=NOT_THE_LARGEST,
    ),
    Setting(
        "metarank",
        "1 tree, visitors 10, beam 15",
        {"estimator": "Parabel", "n_trees": 1, "visitors": 10, "beam": 15},
    ),
    Setting(
        "metarank",
        "1 tree, visitors 30, beam 15",
        {"estimator": "Parabel", "n_trees": 1, "visitors": 30, "beam": 15},
        sets=NOT_THE_LARGEST,
    ),
    Setting(
        "metarank",
        "1 tree, light path, visitors 5",
        {"estimator": "Parabel", "n_trees": 1, "path_weight": 0.3, "visitors": 5},
        sets=NOT_THE_LARGEST,
    ),
    Setting(
        "metarank",
        "1 tree, visitors 10, beam 8",
        {"estimator": "Parabel", "n_trees": 1, "visitors": 10, "beam": 8},
        sets=NOT_THE_LARGEST,
    ),
    Setting(
        "metarank",
        "1 tree, leaves of 256, light path, visitors 8, beam 8",
        {
            "estimator": "Parabel",
            "n_trees": 1,
            "max_leaf": 256,
            "path_weight": 0.3,
            "visitors": 8,
            "beam": 8,
        },
        sets=NOT_THE_LARGEST,
    ),
    Setting(
        "metarank",
        "1 tree, leaves of 256, lightest path, visitors 8, beam 14",
        {
            "estimator": "Parabel",
            "n_trees": 1,
            "max_leaf": 256,
            "path_weight": 0.1,
            "visitors": 8,
            "beam": 14,
        },
        sets=NOT_THE_LARGEST,
    ),
    Setting(
        "metarank",
        "1 tree, leaves of 256, light path, visitors 5, beam 7",
        {
            "estimator": "Parabel",
            "n_trees": 1,
            "max_leaf": 256,
            "path_weight": 0.2,
            "visitors": 5,
            "beam": 7,
        },
        sets=NOT_THE_LARGEST,
    ),
    Setting("metarank", "beam 16", {"estimator": "Parabel", "beam": 16}, sets=NOT_THE_LARGEST),
    Setting(
        "metarank",
        "1 tree, visitors 30, beam 12",
        {"estimator": "Parabel", "n_trees": 1, "visitors": 30, "beam": 12},
        sets=NOT_THE_LARGEST,
    ),
    # Many short texts: more passes, a stronger penalty, larger leaves instead of visitors.
    Setting("metarank", "short texts, 1 tree", {**SHORT_TEXTS, "n_trees": 1, "beam": 10}),
    Setting("metarank", "short texts, 2 trees", {**SHORT_TEXTS, "n_trees": 2, "beam": 7}),
    Setting("metarank", "short texts, 3 trees", SHORT_TEXTS),
    Setting("metarank", "OneVsAll, C 0.7", {"estimator": "OneVsAll", "C": 0.7}, kind="flat", sets=NATURAL),
    Setting("metarank", "OneVsAll, C 0.5", {"estimator": "OneVsAll", "C": 0.5}, kind="flat", sets=NATURAL),
    Setting("metarank", "OneVsAll", {"estimator": "OneVsAll"}, kind="flat", sets=NATURAL),
    Setting(
        "metarank", "OneVsAll, ridge", {"estimator": "OneVsAll", "loss": "ridge"}, kind="flat", sets=NATURAL
    ),
)

# Two threads are measured with the default, growth with n and L with a tree of the cheaper sort.
DEFAULT = OURS[0]
GROWING = next(setting for setting in OURS if setting.name == "1 tree, visitors 10, beam 15")
TWO_THREADS_SETS = (REFERENCE, "CiteULike-t-tags")


@dataclass(frozen=True)
class Extreme:
    """A set of `make_extreme`; 5,000 further rows are for prediction."""

    n_rows: int
    n_labels: int
    n_features: int = 100_000
    n_test: int = 5_000

    def __str__(self) -> str:
        return f"extreme-n{self.n_rows}-L{self.n_labels}"


GROWTH = tuple(Extreme(n, L) for L in (10_000, 100_000, 1_000_000) for n in (125_000, 500_000))
