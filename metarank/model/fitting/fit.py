"""`fit_model`: the order in which the stages of a model are fitted.

sources -> candidates -> meta-features -> ranker -> thresholds -> fits on all rows
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank._util.modules import outside
from metarank._util.progress import as_part, note
from metarank.data.block_encoder import BlocksEncoder
from metarank.data.word_order import name_forms
from metarank.model.fitted import FittedModel
from metarank.model.fitting.encoding import block_weights
from metarank.model.fitting.inputs import TrainingInput
from metarank.model.fitting.judge import Judged, judge
from metarank.model.fitting.lists import ranked_rows, training_lists, weights_of_labels
from metarank.model.fitting.memory import check_memory
from metarank.model.fitting.sources import chosen_sources, pairs_per_row
from metarank.model.fitting.stages import LocalStages, RankedPairs
from metarank.scorers.neighbors.prior import smoothed_shares
from metarank.scorers.source import Source, describers, proposers
from metarank.types.block_columns import with_rest
from metarank.types.given import Given
from metarank.types.label_names import OtherNames
from metarank.types.texts import NameForms
from metarank.types.view import TrainingSet, hidden_labels


def fit_model(
    given: TrainingInput, at_work: Callable[[TrainingSet], AbstractContextManager[LocalStages]]
) -> FittedModel:
    """Fit every stage on the training rows.

    Parameters
    ----------
    given : TrainingInput
    at_work : function of a TrainingSet
        Returns the stages in which sources and ranker are fitted, as a context of the fit.

    Raises
    ------
    ValueError, TypeError
        If a parameter does not suit the data, or the machine has less memory than the large matrices take.
    """
    given = weighed(given)
    texts = texts_of_labels(given)
    sources = chosen_sources(given, texts.rows)
    given = with_word_order(given, sources)
    data = training_set(given, sources, texts)
    rows = ranked_rows(data, sources, given.options)
    check_memory(data, sources, len(rows) * pairs_per_row(data, sources, given.options.shortlist_size))
    with at_work(data) as stages:
        with as_part("tuning", 0.01, 0.04):
            sources = tuned(given, sources, stages)
        with as_part("shortlisting", 0.05, 0.2):
            lists = training_lists(given, data, rows, sources, stages)
        with as_part("describing", 0.25, 0.35):
            columns = stages.describe(sources, lists.described, rows)
        with as_part("ranking", 0.6, 0.2):
            ranked = stages.rank(columns, lists, sources)
        for text in ranked.leaks:
            warnings.warn(text, stacklevel=outside())
        cascade = lists.proposed.cascade
        judged = judge(ranked, lists, data)
        del lists
        with as_part("fitting on all rows", 0.85, 0.15):
            sources = stages.fit_on_all(sources)
    return replace(assembled(given, sources, ranked, judged), cascade=cascade)


def assembled(
    given: TrainingInput, sources: list[Source], ranked: RankedPairs, judged: Judged
) -> FittedModel:
    """The model of fitted sources and ranker."""
    labels, n = given.labels, given.n_rows
    return FittedModel(
        encoder=given.encoder,
        n_labels=given.n_labels,
        label_names=labels.names,
        labels=labels.table,
        label_separator=labels.separator,
        n_rows=n,
        row_names=given.row_names,
        text_columns=None if given.text_columns is None else list(given.text_columns),
        inv_propensity=weights_of_labels(labels.Y),
        prior=smoothed_shares(np.diff((labels.Y > 0).tocsc().indptr), n).astype(np.float32),
        objective_names=list(labels.targets) or None,
        sources=sources,
        standardizes=given.options.standardizes,
        feature_columns=ranked.feature_columns,
        raw_columns=ranked.raw_columns,
        ranker=ranked.ranker,
        point_ranker=ranked.point_ranker,
        thresholds=judged.thresholds,
        known_labels=judged.known_labels,
        propensity_weight=judged.propensity_weight,
        tuned_weight=judged.tuned_weight,
        random_state=given.options.seed,
        missing=judged.missing,
        feature_importances=ranked.importances,
        held_out_quality=judged.quality,
    )


class LabelTexts(NamedTuple):
    """Names and longer texts of the labels, if they carry meaning, and both as a matrix over X's words."""

    names: Sequence[str] | None
    longer: Sequence[str] | None
    rows: sp.csr_matrix | None


def texts_of_labels(given: TrainingInput) -> LabelTexts:
    """What the sources may read of the labels."""
    encoder, others = given.encoder, given.labels.others
    names, texts = given.labels.words, given.labels.longer
    if given.labels.are_ids and not (texts is None and others is None):
        names = [""] * given.n_labels
    if not given.options.names:
        names, texts = None, None
    rows = encoder.label_text(given.X, names, texts, given.words)
    if rows is None and names is not None and others is not None and encoder.feature_words is not None:
        known = len(OtherNames.of(others, encoder.rows_of_names))  # by them alone labels may be found
        rows = encoder.rows_of_names(names, texts) if known else None
    return LabelTexts(names, texts, rows)


# --- training rows ---------------------------------------------------------------


def training_set(given: TrainingInput, sources: list[Source], texts: LabelTexts) -> TrainingSet:
    """The rows, labels and texts that the sources learn from."""
    encoder, seed = given.encoder, given.options.seed
    spelled = any(source.scorer.reads_text == "label_spelling" for source in sources)
    # If labels are shortlisted, many have no row outside a fold anyway.
    hiding = not proposers(sources) and any(scorer.reads_names for scorer in describers(sources))
    fold = given.fold_map
    n_folds = int(fold.max()) + 1
    _tell_of_folds(given, n_folds)
    spelling = None
    if spelled and texts.names is not None and encoder.feature_words is not None:
        spelling = encoder.rows_of_spellings(texts.names, texts.longer)
    return TrainingSet(
        given.X,
        given.labels.Y,
        fold,
        seed=seed,
        label_names=given.labels.names,
        label_text=texts.rows,
        label_spelling=spelling,
        other_names={} if texts.rows is None else other_names(given, spelled),
        label_vectors=given.label_vectors,
        words=encoder.feature_words,
        feature_scale=encoder.transform.scale,
        targets=given.labels.targets,
        blocks=with_rest(encoder.blocks),
        hidden_in=hidden_labels(given.n_labels, n_folds, seed) if hiding else None,
        groups=given.groups,
        given=given.pairs,
        name_forms=_name_forms(given, texts, sources),
    )


def with_word_order(given: TrainingInput, sources: list[Source]) -> TrainingInput:
    """The training input with the words of its texts in their order, if a source looks at them."""
    readers = [source.scorer for source in sources if source.scorer.reads_word_order]
    if not readers:
        return given
    reader = given.encoder.word_reader
    if given.texts is None or reader is None:
        raise ValueError(f"X must be texts for {type(readers[0]).__name__}, which looks for names in them")
    words = reader.in_order(given.texts)
    pairs = given.pairs or Given(given.n_rows, given.n_labels)
    return replace(given, pairs=replace(pairs, words=words))


def _name_forms(given: TrainingInput, texts: LabelTexts, sources: list[Source]) -> NameForms | None:
    """The ways in which the labels are written, if a source looks for them in texts: by their names, or by
    their text where there is no name."""
    if not any(source.scorer.reads_word_order for source in sources):
        return None
    vectorizer, (names, longer, _) = given.encoder.word_reader, texts
    if names is not None and longer is not None:
        names = [name if name.strip() else text or "" for name, text in zip(names, longer)]
    if names is None or vectorizer is None:
        raise ValueError("the labels must have names for NameMentions, which looks for them in texts")
    return name_forms(names, given.labels.others, vectorizer.language_)


def _tell_of_folds(given: TrainingInput, n_folds: int) -> None:
    wanted = given.options.n_folds
    if given.fold is not None:
        note(f"folds: {n_folds}, those of folds")
    elif given.groups is not None:
        fewer = f", fewer than n_folds={wanted}" if n_folds < wanted else ""
        note(
            f"folds: {n_folds}{fewer}, each of whole groups, of which there are {int(given.groups.max()) + 1}"
        )


def other_names(given: TrainingInput, spelled: bool) -> dict[str, OtherNames]:
    """The alternative names of the labels over X's words."""
    others = given.labels.others
    if others is None:
        return {}
    rows = {"label_text": given.encoder.rows_of_names}
    rows |= {"label_spelling": given.encoder.rows_of_spellings} if spelled else {}
    by_source = {source: OtherNames.of(others, rows_of) for source, rows_of in rows.items()}
    return {source: names for source, names in by_source.items() if len(names)}


def weighed(given: TrainingInput) -> TrainingInput:
    """The training input with its blocks on scales learned on held-out rows, without those of no use."""
    encoder = given.encoder
    if not isinstance(encoder, BlocksEncoder):
        return given
    if len(encoder.parts) == 1:
        only = encoder.parts[0]
        note(f"block {only.name}: {only.kind}, the only one")
        return given
    # Words find labels by their names too, which a ridge on rows knows nothing of.
    has_names, dense = given.labels.words is not None, given.label_vectors
    kept = [
        block.name
        for block in encoder.columns
        if (has_names and block.words is not None) or (dense is not None and block.start == dense.start)
    ]
    weights, lines = block_weights(
        encoder.columns, given.X, given.labels.Y, given.fold_map, given.options.seed, kept
    )
    for line in lines:
        note(line)
    return replace(given, X=encoder.reweighed(given.X, weights))


def tuned(given: TrainingInput, sources: list[Source], stages: LocalStages) -> list[Source]:
    """The sources with free parameters tuned once on all rows, for all folds."""
    if not given.options.standardizes:
        describers(sources)[0].set_params(k=stages.tuned_k())
    return stages.tune(sources)
