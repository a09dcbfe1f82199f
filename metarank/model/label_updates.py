"""Labels that are added, removed, renamed or merged, and rows that are added, without a new fit.

Parts that are sums or lists of training rows (neighbours, centroids, priors, propensities, the index of label
names) are recomputed from the changed rows, which takes seconds. Trained parts do not change
(`metarank.scorers.after_changes`). Label ids do not change: new labels are appended, and a removed label is
never proposed. Its id is reused only for a new label of the same name.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from metarank._util.printable import first_few
from metarank.data.block_encoder import BlocksEncoder
from metarank.data.dataset import Dataset
from metarank.data.encoder import texts_of
from metarank.data.label_text import label_phrases
from metarank.data.word_order import name_forms
from metarank.metrics.propensity import inv_propensity
from metarank.model.inputs import short_names
from metarank.model.label_change import LabelChange
from metarank.model.label_space import vectors_in
from metarank.model.relevance import aligned_relevance
from metarank.scorers.after_changes import KeptScorer
from metarank.scorers.base import LabelScorer
from metarank.scorers.neighbors.prior import smoothed_shares
from metarank.scorers.neighbors.training_rows import TrainingRows
from metarank.scorers.source import with_scorers
from metarank.types.arrays import dense
from metarank.types.block_columns import side_by_side
from metarank.types.blocks import holds_blocks
from metarank.types.checks import check_rejected
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.missing import MissingPairs
from metarank.types.other_names import OtherNames
from metarank.types.strings import PackedStrings
from metarank.types.view import Features, TrainingSet
from metarank.types.word_rows import NameForms

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker
    from metarank.model.fitted import FittedModel

_OBJECTIVES = "a model of several objectives does not change its rows or labels: refit"


def changed_labels(model: FittedModel, change: LabelChange, n_jobs: int) -> FittedModel:
    """The model after a change of its labels."""
    X, Y, index = training_rows_of(model)
    by_row = sp.coo_matrix(Y)
    label = change.now[by_row.col]
    kept = label >= 0
    pairs = (by_row.row[kept], label[kept])
    changed = sp.csr_matrix((np.ones(len(label[kept]), np.float32), pairs), (Y.shape[0], change.n_labels))
    changed.sum_duplicates()
    changed.data[:] = 1
    texts = _label_texts(model)
    make = {"label_text": model.encoder.rows_of_names, "label_spelling": model.encoder.rows_of_spellings}
    texts = {source: _changed_text(text, change, make[source]) for source, text in texts.items()}
    others = _other_names(model)
    if change.table is not None and change.table.alternative_names is not None:
        own = list(change.table.alternative_names)
        for label in change.removed:
            own[label] = []
        others = {source: OtherNames.of(own, make[source]) for source in texts}
    _warn_of_unknown_words(
        change, [*texts.values(), *(names.by_label(change.n_labels) for names in others.values())]
    )
    phrases = _label_phrases(model, change)
    data = _training_set(model, X, changed, change.names, texts, phrases, others, change.table)
    if model.reads_word_order and model.encoder.vectorizer is not None:
        data.name_forms = _name_forms(change, model.encoder.vectorizer.language_)
    if index is not None:
        data.shared("training-rows", lambda X: index)
    return replace(
        _updated(model, data, change.now, n_jobs),
        n_labels=change.n_labels,
        label_names=change.names,
        labels=change.table,
        removed=change.removed,
        merged=change.merged,
        missing=None if model.missing is None else _still_missing(model.missing, change.now, changed),
    )


def with_more_rows(estimator: MetaRanker, X: Any, Y: Any, negatives: Any, n_jobs: int) -> FittedModel:
    """The model with more training rows, for `MetaRanker.partial_fit`."""
    model = estimator.fitted_
    if model.given_sources or model.given_features:
        raise ValueError(
            "partial_fit takes no rows of a model with candidates or pair_features, of which it keeps "
            "rates, not rows: refit"
        )
    if isinstance(X, Dataset) == (Y is not None):
        raise ValueError("Y is required, and must be left out where X is a Dataset, which holds labels")
    if model.objective_names is not None:
        raise ValueError(_OBJECTIVES)
    rows = model.encoder.encode(X)
    blocks = X.X if isinstance(X, Dataset) else X
    if isinstance(model.encoder, BlocksEncoder) and holds_blocks(blocks):
        own = model.encoder.read(blocks).first_texts
    else:
        own = None if isinstance(X, Dataset) else texts_of(X)
    Y, texts = (X, X.titles or X.texts or own) if isinstance(X, Dataset) else (Y, own)
    labels = rows_labels(estimator, Y, rows.shape[0])
    if negatives is not None and check_rejected(negatives, labels, model.label_table).n_pairs:
        warnings.warn(
            "negatives of added rows count as labels that the rows lack: ranker, cuts and calibration, which "
            "learn more from them, do not change before the next fit",
            stacklevel=3,
        )
    return _added_rows(model, rows, labels, short_names(texts), n_jobs)


def _added_rows(
    model: FittedModel, X: Features, Y: sp.csr_matrix, row_names: list[str] | None, n_jobs: int
) -> FittedModel:
    known, before, _ = training_rows_of(model)
    if model.removed.size and np.isin(Y.indices, model.removed).any():
        label = int(Y.indices[np.isin(Y.indices, model.removed)][0])
        raise ValueError(f"Y must not hold removed labels, got {label}")
    stacked = sp.vstack([known, X], "csr") if sp.issparse(X) else np.concatenate([known, X])
    binary = sp.vstack([before, (Y > 0).astype(np.float32)], "csr")
    data = _training_set(
        model,
        stacked,
        binary,
        model.label_names,
        _label_texts(model),
        _label_phrases(model),
        _other_names(model),
        model.labels,
    )
    names = model.row_names
    if names is not None or row_names is not None:
        names = PackedStrings.of([*(names or [""] * before.shape[0]), *(row_names or [""] * Y.shape[0])])
    same = np.arange(model.n_labels, dtype=np.int32)
    return replace(_updated(model, data, same, n_jobs), n_rows=Y.shape[0] + before.shape[0], row_names=names)


def rows_labels(model: MetaRanker, Y: Any, n_rows: int) -> sp.csr_matrix:
    """The relevances of new rows in the model's label ids; ValueError for an unknown label."""
    relevance = aligned_relevance(model, Y, n_rows)
    if relevance.unknown:
        raise ValueError(
            f"Y must have labels of this model only, got {relevance.unknown[0]!r:.80}; add it first"
        )
    return relevance.Y


def training_rows_of(model: FittedModel) -> tuple[Features, sp.csr_matrix, TrainingRows | None]:
    """The training rows of a model, their labels, CSR (n, L) of ones, and the index of the rows if there is
    one of all of them, from sources that keep them.

    Of a model of blocks only the blocks that some source keeps are known; the columns of the others are 0.

    Raises
    ------
    ValueError
        If no source keeps them, or the model has several objectives.
    """
    if model.objective_names is not None:
        raise ValueError(_OBJECTIVES)
    for source in model.sources:
        found = source.scorer.training_labels()
        if found is not None:
            return found[0].X, found[1], found[0]
    kept = [own for source in model.sources if (own := source.scorer.block_rows()) is not None]
    if kept:
        of_block = {columns.name: rows.X for columns, rows, _ in kept}
        Y = kept[0][2]
        parts = [
            of_block.get(block.name, sp.csr_matrix((Y.shape[0], block.stop - block.start), dtype=np.float32))
            for block in model.encoder.blocks
        ]
        X = side_by_side(parts)
        return dense(X) if model.encoder.layout == "dense" else X, Y, None
    raise ValueError(
        "this model keeps no training rows to be changed, since none of its scorers is one of neighbours: "
        "refit, or have 'neighbors' or 'votes' among its features or shortlisters"
    )


def _training_set(
    model: FittedModel,
    X: Any,
    Y: sp.csr_matrix,
    names: Any,
    texts: dict[str, sp.csr_matrix],
    phrases: list[str] | None,
    others: dict[str, OtherNames],
    table: LabelDescriptions | None,
) -> TrainingSet:
    return TrainingSet(
        X,
        Y,
        np.zeros(Y.shape[0], np.int32),
        seed=model.random_state,
        label_names=names,
        label_phrases=phrases,
        words=model.encoder.feature_words,
        feature_scale=model.encoder.transform.scale,
        other_names=others,
        blocks=model.encoder.blocks,
        label_vectors=vectors_in(model.encoder, table),
        **texts,
    )


def _updated(model: FittedModel, data: TrainingSet, now: np.ndarray, n_jobs: int) -> FittedModel:
    """The model with sources and propensities for changed training rows. `now` maps each earlier label to its
    new id, or -1. The numbers of labels and rows are not updated."""
    n, n_labels = data.Y.shape
    view = data.view()
    same = n_labels == len(now) and np.array_equal(now, np.arange(n_labels))

    def updated(scorer: LabelScorer) -> LabelScorer:
        new = scorer.updated(view, n_jobs=n_jobs)
        if new is None:
            return scorer if same else KeptScorer.of(scorer, now, n_labels)
        return new

    return replace(
        model,
        sources=with_scorers(model.sources, [updated(source.scorer) for source in model.sources]),
        inv_propensity=inv_propensity(data.Y) if n >= 3 else np.ones(n_labels),
        prior=smoothed_shares(view.label_counts, n).astype(np.float32),
    )


def _label_texts(model: FittedModel) -> dict[str, sp.csr_matrix]:
    """The matrices of label texts that the sources keep, by their name in a `TrainingSet`."""
    texts: dict[str, sp.csr_matrix] = {}
    for source in model.sources:
        for name, text in source.scorer.label_texts().items():
            # The same text of several sources, or those of several blocks, which share no column.
            texts[name] = text if name not in texts else texts[name].maximum(text)
    return texts


def _other_names(model: FittedModel) -> dict[str, OtherNames]:
    """The alternative names that the sources keep, by their name in a `TrainingSet`."""
    by_block: dict[str, dict[str, OtherNames]] = {}
    for source in model.sources:
        for name, names in source.scorer.other_names().items():
            by_block.setdefault(name, {})[source.scorer.block] = names
    return {name: OtherNames.joined(list(found.values())) for name, found in by_block.items()}


def _label_phrases(model: FittedModel, change: LabelChange | None = None) -> list[str] | None:
    """The phrases of the labels after a change, if a source has learned from them."""
    known = (source.scorer.label_phrases() for source in model.sources)
    phrases = next((found for found in known if found is not None), None)
    if phrases is None or change is None:
        return phrases
    phrases = [*phrases, *[""] * (change.n_labels - len(phrases))]
    for label, (name, text) in change.texts.items():
        phrases[label] = label_phrases([name], [text])[0]
    return phrases


def _changed_text(
    text: sp.csr_matrix, change: LabelChange, rows_of: Callable[..., sp.csr_matrix]
) -> sp.csr_matrix:
    """The text matrix of the labels after a change. Rows of removed labels are empty."""
    n_new = change.n_labels - text.shape[0]
    stays = np.append(change.now == np.arange(text.shape[0]), np.zeros(n_new, bool)).astype(np.float32)
    out = sp.diags_array(stays) @ sp.vstack([text, sp.csr_matrix((n_new, text.shape[1]), dtype=np.float32)])
    if change.texts:
        ids = list(change.texts)
        new = rows_of(*zip(*change.texts.values()))
        place = sp.csr_matrix((np.ones(len(ids)), (ids, np.arange(len(ids)))), (change.n_labels, len(ids)))
        fresh = np.ones(change.n_labels, np.float32)
        fresh[ids] = 0
        out = sp.diags_array(fresh) @ out + place @ new
    out = sp.csr_matrix(out, dtype=np.float32)
    out.eliminate_zeros()
    out.sum_duplicates()
    return out


def _warn_of_unknown_words(change: LabelChange, texts: Sequence[sp.csr_matrix]) -> None:
    """Warn about new names without a word of the model's vocabulary, since no row can match them."""
    silent = [name for label, (name, _) in change.texts.items() if not any(text[label].nnz for text in texts)]
    if texts and silent:
        warnings.warn(
            f"no word of {first_few(silent)} is known to this model: such a label is found by rows of known "
            "words that `partial_fit` adds, or after a new fit",
            stacklevel=4,
        )


def _name_forms(change: LabelChange, language: str | None) -> NameForms:
    """The ways in which the labels are written after a change; those that are removed, in none."""
    table = change.table
    names = list((None if table is None or not table.has_names else table.names) or change.names or [])
    others = None if table is None or table.alternative_names is None else list(table.alternative_names)
    for label in change.removed:
        names[label] = ""
        if others is not None:
            others[label] = []
    return name_forms(names, others, language)


def _still_missing(missing: MissingPairs, now: np.ndarray, Y: sp.csr_matrix) -> MissingPairs:
    """The pairs whose label still exists and is still not a label of the row."""
    rows, labels = np.asarray(missing.rows), now[missing.labels]
    _, first = np.unique(rows * np.int64(Y.shape[1]) + labels, return_index=True)
    kept = np.zeros(len(rows), bool)
    kept[first] = True
    kept &= labels >= 0
    kept[kept] = np.asarray(Y[rows[kept], labels[kept]]).ravel() == 0
    return MissingPairs(rows[kept], labels[kept], missing.probabilities[kept])
