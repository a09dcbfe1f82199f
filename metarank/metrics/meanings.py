"""What each metric is, in a sentence."""

from __future__ import annotations

import re
from typing import Final

# After "is"; {places} stands for the ranks that count, {k} for their number. Of a labelwise metric, "WP-l",
# rows and labels change places.
MEANINGS: Final[dict[str, str]] = {
    "P": "the share of the labels at {places} that are relevant, on average over rows",
    "R": "the share of a row's relevant labels that are at {places}, on average over rows",
    "F1": "twice the relevant labels at {places}, divided by {k} and the number of relevant labels, on "
    "average over rows",
    "nDCG": "what the relevant labels at {places} gain, higher ranks more, as a share of a perfect "
    "order's gain",
    "MAP": "the share of relevant labels down to each relevant one, averaged over these and over rows",
    "RankLoss": "the share of pairs of a relevant and an irrelevant label of a row that are in the wrong "
    "order",
    "One-error": "the share of rows whose first label is irrelevant",
    "Coverage": "the rank of a row's last relevant label, counted from 0, on average over rows",
    "MRR": "1 over the rank of a row's first relevant label, of those at {places}, on average over rows",
    "MRR-all": "1 over the rank of each relevant label, averaged over these and over rows",
    "ADG": "the discount of each relevant label's rank, averaged over these and over rows",
    "AUC": "the chance that a relevant row of a label is scored above an irrelevant one, averaged over "
    "labels",
    "micro-AUC": "the chance that a relevant pair of a row and a label is scored above an irrelevant one",
    "PSP": "the weight of the relevant labels at {places}, rare labels weighing more by their inverse "
    "propensity, as a share of the greatest possible",
    "PSnDCG": "the weight of the relevant labels at {places}, rare labels and higher ranks weighing more, "
    "as a share of the greatest possible",
    "PSP-point": "the weight of the relevant labels at {places}, rare labels weighing more, as a share of "
    "the greatest possible in each row, averaged over rows",
    "PSnDCG-point": "the weight of the relevant labels at {places}, rare labels and higher ranks weighing "
    "more, as a share of the greatest possible in each row, averaged over rows",
    "C": "the number of different labels at {places} of all rows, relevant or not, as a share of the most "
    "possible",
    "WP": "the relevance of the labels at {places}, as a share of the greatest possible",
    "WN": "the relevance of the labels at {places}, higher ranks weighing more, as a share of the "
    "greatest possible",
    "Tau": "the share of pairs of a label at {places} and a relevant label that are not in the wrong order",
    "WP-regret": "how far the mean relevance at {places} falls short of the best possible",
    "Regression-error": "the mean error of the relevance predicted for the labels at {places}",
    "XMAD": "the mean of the {k} largest errors of a row's predicted relevances, on average over rows",
    "XRMSE": "the root of the mean square of the {k} largest errors of a row's predicted relevances, on "
    "average over rows",
    "MAD": "the sum of the errors of a row's predicted relevances, on average over rows",
    "RMSE": "the root of the mean square of the errors of all predicted relevances",
    "AUPRC": "the area under the curve of precision and recall, with one threshold for all pairs",
    "micro-F1": "the balance of precision and recall over all decisions, so that frequent labels weigh most",
    "macro-F1": "the balance of precision and recall of each label, averaged over labels, which weigh the "
    "same",
    "example-F1": "the balance of precision and recall of each row's label set, averaged over rows",
    "example-precision": "the share of a row's label set that is relevant, averaged over rows with a set",
    "example-recall": "the share of a row's relevant labels that are in its set, averaged over rows",
    "Hamming": "the share of decisions, one for each row and label, that are wrong",
    "subset-accuracy": "the share of rows whose whole label set is right",
    "LabelCoverage": "the share of labels that are predicted for some row, rightly or not",
    "hP": "the share of predicted labels, and of those above them in the hierarchy, that are right",
    "hR": "the share of relevant labels, and of those above them in the hierarchy, that are predicted",
    "hF": "the balance of hP and hR",
}
UNITS: Final[dict[str, str]] = {
    "fraction": "in per cent",
    "positions": "in ranks",
    "relevance": "as a share of the greatest relevance",
}
_SWAPPED = {"row": "label", "label": "row"}


def meaning(name: str, k: int | None, unit: str, greater_is_better: bool) -> str:
    """The sentence of `Metric.meaning`."""
    places = "any rank" if k is None else "rank 1" if k == 1 else f"ranks 1 to {k}"
    base, swapped = name.removesuffix("-l"), name.endswith("-l")
    sentence = MEANINGS[base].format(places=places, k=k)
    if swapped:
        sentence = re.sub(r"\b(row|label)(?=s?\b)", lambda match: _SWAPPED[match[0]], sentence)
    return f"{sentence}; {UNITS[unit]}, {'more' if greater_is_better else 'less'} is better"
