"""Who is measured, in the order of the tables: the peers' best published settings, and ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from borrowed_runs import PEERS, Setting
from sets import LARGEST

_NOT_LARGEST = (f"[!{LARGEST[0]}]*",)
_BY_NAME = {str(setting): setting for setting in PEERS}


def _peer(name: str, *sets: str) -> Setting:
    return replace(_BY_NAME[name], sets=sets)


TREE_PEERS = (
    _peer("omikuji parabel3", *_NOT_LARGEST),
    _peer("omikuji 1 tree, collapse 5", LARGEST),
    _peer("napkinxc parabel3", *_NOT_LARGEST),
    _peer("pecos default3", "*"),
    _peer("pecos parabel3", *_NOT_LARGEST),
    _peer("pecos 1 tree, 16-way", LARGEST),
    Setting("libmultilabel", "tree", {"K": 100, "dmax": 10}, sets=_NOT_LARGEST),
)
FLAT_PEERS = (_peer("pecos one-vs-all", *_NOT_LARGEST),)
SHORTLISTERS = (
    Setting("metarank", "Parabel", {"estimator": "Parabel"}),
    Setting("metarank", "XReg", {"estimator": "XReg"}),
    Setting("metarank", "PfastreXML", {"estimator": "PfastreXML"}),
    Setting("metarank", "OneVsAll", {"estimator": "OneVsAll"}, kind="flat", sets=_NOT_LARGEST),
    Setting("metarank", "NeighborShortlister", {"estimator": "NeighborShortlister"}),
)
# What else of ours is good on rare labels, by itself.
ALONE = (
    Setting(
        "metarank",
        "OneVsAll, ridge",
        {"estimator": "OneVsAll", "loss": "ridge"},
        kind="flat",
        sets=_NOT_LARGEST,
    ),
    Setting(
        "metarank",
        "XReg-t",
        {"estimator": "XReg", "relevance": "inverse-propensity", "normalize": "label", "tail": "auto"},
    ),
)
# `params` are the arguments of MetaRanker. The peers do not read the names of labels.
PIPELINE = (Setting("metaranker", "without names", {"names": False}),)
WITH_NAMES = (Setting("metaranker", "with names"),)
# The pipeline over one shortlister, which it has to beat: the estimator's name in SHORTLISTERS is at the end.
OVER_ONE = (
    Setting("metaranker", "over XReg", {"names": False, "shortlister": "xreg"}),
    Setting("metaranker", "over PfastreXML", {"names": False, "shortlister": "pfastrexml"}),
)

GROUPS = {
    "tree": TREE_PEERS,
    "flat": FLAT_PEERS,
    "shortlister": SHORTLISTERS,
    "alone": ALONE,
    "pipeline": PIPELINE,
    "names": WITH_NAMES,
    "over one": OVER_ONE,
}


def contenders(set_name: str, groups: Iterable[str] = GROUPS) -> list[Setting]:
    """All of some groups that run on a set."""
    return [setting for group in groups for setting in GROUPS[group] if setting.runs_on(set_name)]


def group_of(setting: Setting) -> str:
    return next(name for name, group in GROUPS.items() if setting in group)
