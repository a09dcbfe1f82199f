"""A fit without training rows: labels are ranked by their names, and by what they mean.

sources that read labels alone -> columns, standardised within the list of a row -> their weighted mean

Nothing is cross-fitted or learned. Scores are not probabilities, and there are no thresholds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from metarank._util.progress import as_part, note
from metarank.model.fitted import FittedModel
from metarank.model.fitting.auto import Sizes, named_scorers
from metarank.model.fitting.fit import LabelTexts, assembled, texts_of_labels, training_set, with_word_order
from metarank.model.fitting.inputs import TrainingInput
from metarank.model.fitting.judge import Judged
from metarank.model.fitting.sources import chosen_sources
from metarank.model.fitting.stages import LocalStages, RankedPairs
from metarank.ranker.assemble import joined_columns
from metarank.ranker.linear_ranker import LinearRanker
from metarank.scorers.base import LabelScorer, columns_of
from metarank.scorers.names.words import BEST
from metarank.scorers.source import describers
from metarank.thresholds.learned_thresholds import NoThresholds
from metarank.types.candidates import Candidates
from metarank.types.feature_table import RELATIVE, unqualified
from metarank.types.suggested import MissingPairs
from metarank.types.view import TrainingSet

# What the kinds of evidence weigh; columns of one kind share its weight. Of 1:1:0 to 4:1:1, and with five
# other columns, near the best on 1,500 training rows each of LLMs4Subjects-dev-en and tib_records_en. nDCG@5
# of the first: the cosine alone .393, the words of names alone .389, so weighed .464.
WEIGHTS: dict[tuple[str, ...], float] = {
    ("label vector: cosine",): 3.0,
    ("label name: cosine", f"label name: cosine{BEST}"): 1.0,
    ("label mention: share alone",): 1.0,
}


def fit_without_rows(given: TrainingInput) -> FittedModel:
    """The model of labels, whose X are texts without labels, or those of the labels.

    Raises
    ------
    ValueError
        If neither names of labels nor vectors can be compared with X.
    """
    texts = texts_of_labels(given)
    scorers = _label_free(given, texts)
    whole = given.n_labels <= Sizes(0, given.n_labels, sp.issparse(given.X)).most_ranked_whole
    chosen = replace(given.options, features=scorers, shortlister=None if whole else scorers)
    sources = chosen_sources(replace(given, options=chosen), texts.rows)
    data = training_set(with_word_order(given, sources), sources, texts)
    with as_part("indexing labels", 0.1, 0.9):
        sources = LocalStages(data, given.options.n_jobs).fit_on_all(sources)
    weights = _weights(describers(sources), data)
    shown = ", ".join(f"{name} {weight:.2g}" for name, weight in weights.items())
    note(f"ranker: fixed weights, since no row has labels: {shown}; scores are not probabilities")
    shares = np.array(list(weights.values()))
    ranked = RankedPairs(LinearRanker.of(weights), np.zeros(0), list(weights), [], shares)
    missing = MissingPairs(*(np.zeros(0, kind) for kind in (np.int64, np.int32, np.float32)))
    no_rows = replace(given.labels, Y=given.labels.Y[:0])
    given = replace(given, X=given.X[:0], labels=no_rows, row_names=None)
    return assembled(given, sources, ranked, Judged(NoThresholds(), 0.0, 0.0, missing, {}))


def _label_free(given: TrainingInput, texts: LabelTexts) -> list[LabelScorer]:
    """The unfitted sources of `WEIGHTS` that have what they read."""
    known, has_names = named_scorers(), texts.rows is not None
    has = {"names": has_names, "mentions": has_names and given.texts is not None}
    has["label-vectors"] = given.label_vectors is not None
    scorers = [known[name]() for name, there in has.items() if there]
    if not scorers:
        raise ValueError("without Y, labels must have names and X texts, or both must have vectors")
    return scorers


def _weights(scorers: list[LabelScorer], data: TrainingSet) -> dict[str, float]:
    """The weight of each column, standardised, that is of use; they sum to 1."""
    pair = Candidates(np.array([0, 1]), np.array([0]), data.Y.shape[1])
    columns, _ = joined_columns([columns_of(s, data.read_by(s)[:1], pair) for s in scorers])
    kinds = [[name for name in columns if unqualified(name) in kind] for kind in WEIGHTS]
    total = sum(weight for weight, names in zip(WEIGHTS.values(), kinds) if names)
    return {
        name + RELATIVE: weight / len(names) / total
        for weight, names in zip(WEIGHTS.values(), kinds)
        for name in names
    }
