"""A `Diagnosis` in words: warnings, a recommendation and the page that `print` shows."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._util.tables import plain_table

if TYPE_CHECKING:
    from metarank.objectives.diagnose import Diagnosis

# Of the pairs that both labels order: where conflicts are rarer, they hardly matter.
RARE_CONFLICTS = 0.05


def warnings_of(found: Diagnosis) -> list[str]:
    """What is likely to go wrong, one sentence each."""
    out = []
    if found.nearly_constant:
        out.append(
            f"the aggregated label is nearly constant: the labels cancel each other out, their weighted sum "
            f"keeps {100 * found.kept_spread:.0f} % of their spread (D.1)"
        )
    if found.dictates and not found.mild and _conflict(found) >= RARE_CONFLICTS:
        out.append(
            f"under loss aggregation {found.names[found.leader]!r} dictates, with "
            f"{100 * found.loss_shares[found.leader]:.0f} % of the inner weight; it would stop at a weight "
            f"of {found.dictates_until:.3g} or less"
        )
    asked = found.weights / found.weights.sum()
    far = int(np.argmax(found.label_shares - asked))
    if found.label_shares[far] - asked[far] > 0.05:
        out.append(
            f"the labels' grades have different ranges: in their sum {found.names[far]!r} has "
            f"{100 * found.label_shares[far]:.0f} % where the weights say {100 * asked[far]:.0f} %; "
            "divide each label by its greatest grade if that is not meant"
        )
    few = [name for name, share in zip(found.names, found.pi) if min(share, 1 - share) * found.n_rows < 10]
    if few:
        out.append(f"fewer than ten rows on one side of zero: {', '.join(few)}; any AUC of it is uncertain")
    return out


def recommendation_of(found: Diagnosis) -> str:
    """What to do, in plain words."""
    before = _before_training(found)
    after = _after_training(found)
    return f"{before} {after}" if after else before


def _before_training(found: Diagnosis) -> str:
    if len(found.names) == 1:
        return "One label: there is nothing to aggregate."
    if found.nearly_constant:
        return (
            "Do not add these labels with these weights: they cancel out. Give them unequal weights, or an "
            "order of importance (lexicographic): one of them has to give way, and only you can say which."
        )
    conflict = _conflict(found)
    if conflict < RARE_CONFLICTS:
        return (
            f"The labels seldom conflict (in {100 * conflict:.1f} % of the pairs that two of them order, at "
            "most): any aggregation serves all of them; label aggregation is the simplest."
        )
    if found.mild:
        return (
            "The labels are about equally skewed: loss and label aggregation with these weights ask for "
            "nearly the same order. Take label aggregation, whose weights keep meaning what they say when "
            "the shares of positives drift."
        )
    balanced = ", ".join(f"{name} {w:.3g}" for name, w in zip(found.names, found.balanced_weights))
    return (
        "Take label aggregation: its weights are the ones that count, whatever the skew. Loss aggregation "
        f"would tilt the order towards {found.names[found.favoured]!r} by a factor of {found.tilt:.1f} that "
        "no weight tells; for the order that label aggregation has, its weights would have to be "
        f"{balanced}. A label that is both rare and hard to predict gets little of a sum: compare Min AUC of "
        "the two on held-out rows."
    )


def _after_training(found: Diagnosis) -> str:
    if not found.models:
        return ""
    names = list(found.models)
    free = [name for i, name in enumerate(names) if not found.dominance[:, i].any()]
    best = max(free, key=lambda name: found.models[name].min_auc.value)
    if len(names) == 1:
        model = found.models[best]
        worst = found.names[int(model.auc.argmin())]
        return f"{worst!r} is served least, with an AUC of {model.min_auc.value:.3f}."
    sure = [name for i, name in enumerate(names) if found.clear[:, i].any()]
    unsure = [name for name in names if name not in free and name not in sure]
    kinds = {"dominated": sure, "dominated, but by no more than chance may do": unsure}
    lost = "; ".join(f"{kind}: {', '.join(of)}" for kind, of in kinds.items() if of)
    text = f"Of the candidates, {best!r} has the greatest Min AUC of those that none dominates"
    return f"{text} ({lost})." if lost else f"{text}."


def page_of(found: Diagnosis) -> str:
    """The whole page, at most about a hundred characters wide."""
    rows = f"{found.n_rows:,} rows, {len(found.names)} label{'s' * (len(found.names) != 1)}"
    parts = [rows + (f", {found.n_queries:,} queries" if found.n_queries else "")]
    if found.propensities is not None:
        seen = ", ".join(f"{name} {p:.2f}" for name, p in zip(found.names, found.propensities))
        parts.append(
            f"Of relevant labels a part was observed ({seen}); all figures are of the complete ones."
        )
    parts += ["", _labels_table(found)]
    if len(found.names) > 1:
        parts += ["", _dictator_line(found), "", _conflicts_table(found)]
    if found.models:
        parts += ["", _models_table(found)]
        parts += _dominance_lines(found)
    parts += ["", *(f"Warning: {text}." for text in found.warnings)] if found.warnings else []
    return "\n".join([*parts, "", f"Recommendation: {found.recommendation}"])


def _labels_table(found: Diagnosis) -> str:
    head = ["label", "above 0", "spread", "weight", "loss agg.", "label agg.", "weight to balance"]
    columns = [
        found.names,
        [f"{100 * share:.1f} %" for share in found.pi],
        [f"{width:.4f}" for width in found.spread],
        [f"{weight:.3g}" for weight in found.weights],
        [f"{100 * share:.1f} %" for share in found.loss_shares],
        [f"{100 * share:.1f} %" for share in found.label_shares],
        [f"{weight:.3g}" for weight in found.balanced_weights],
    ]
    return plain_table(head, list(zip(*columns)))


def _dictator_line(found: Diagnosis) -> str:
    name = found.names[found.leader]
    if not found.dictates:
        return f"Loss aggregation: {name!r} weighs most, but not more than all others together."
    text = (
        f"Loss aggregation: {name!r} dictates where labels are deterministic (Lukasik et al. 2025, "
        f"Proposition 6.1); elsewhere it counts {found.lead:.2f} times as much as the next label"
    )
    if found.mild:
        return f"{text}, which is mild: near-ties apart, the order is nearly that of equal weights."
    return f"{text}. It would stop at a weight of {found.dictates_until:.3g}."


def _conflicts_table(found: Diagnosis) -> str:
    head = ["labels", "correlation", "conflicts, of pairs both order", "of all pairs"]
    rows = [
        [
            f"{found.names[j]} / {found.names[k]}",
            f"{found.correlations[j, k]:.3f}",
            _share(found.conflicts[j, k]),
            _share(found.conflict_shares[j, k]),
        ]
        for j, k in combinations(range(len(found.names)), 2)
    ]
    return plain_table(head, rows)


def _models_table(found: Diagnosis) -> str:
    head = ["scores", *(f"AUC {name}" for name in found.names), "Diff", "Min"]
    rows = [
        [
            name,
            *_with_intervals(model.auc, model.auc_low, model.auc_high),
            *(_with_interval(*of) for of in (model.diff_auc, model.min_auc)),
        ]
        for name, model in found.models.items()
    ]
    out = plain_table(head, rows)
    if found.n_queries and found.propensities is None:
        head = ["scores", *(f"nDCG@{found.k} {name}" for name in found.names)]
        models = found.models.items()
        rows = [[name, *_with_intervals(of.ndcg, of.ndcg_low, of.ndcg_high)] for name, of in models]
        out += "\n\n" + plain_table(head, rows)
    return out


def _dominance_lines(found: Diagnosis) -> list[str]:
    names = list(found.models)
    lines = [
        f"{names[i]} dominates {names[j]}" + ("" if found.clear[i, j] else ", by no more than chance may do")
        for i, j in np.argwhere(found.dominance)
    ]
    if len(names) > 1 and not lines:
        lines = ["No candidate dominates another."]
    return ["", *lines] if lines else []


def _conflict(found: Diagnosis) -> float:
    """The most that two labels conflict, as a share of the pairs that both order."""
    off_diagonal = found.conflicts[~np.eye(len(found.names), dtype=bool)]
    known = off_diagonal[~np.isnan(off_diagonal)]
    return float(known.max()) if len(known) else 0.0


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


def _with_interval(value: float, low: float, high: float) -> str:
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _with_intervals(values: Any, lows: Any, highs: Any) -> list[str]:
    return [_with_interval(*of_label) for of_label in zip(values, lows, highs)]
