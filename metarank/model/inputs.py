"""`TrainingInput`: the arguments of a fit, checked and encoded."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.callers import outside
from metarank._util.progress import note
from metarank.data.block_encoder import BlocksEncoder
from metarank.data.dataset import Dataset
from metarank.data.encoder import InputEncoder, texts_of
from metarank.data.separators import AUTO, cut_labels, described, same_separator
from metarank.data.text_part import shortened
from metarank.model.chosen_language import chosen_language
from metarank.model.label_space import vectors_in
from metarank.model.parameters import FitOptions
from metarank.model.targets import check_targets
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.types.blocks import Blocks, check_blocks, holds_blocks
from metarank.types.candidates import Candidates
from metarank.types.checks import check_labels, check_rejected, check_sample_weight
from metarank.types.containers import table_columns
from metarank.types.given import Given, check_has_pairs, read_given, width_of
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.label_table import LabelTable
from metarank.types.restrict import check_lists, for_each_row
from metarank.types.row_groups import check_fold_map, check_groups, check_whole_groups
from metarank.types.strings import PackedStrings
from metarank.types.vectors_of_labels import LabelVectors
from metarank.types.view import Features, fold_of_rows


@dataclass(frozen=True, eq=False)
class Labels:
    """The labels of the training rows.

    Parameters
    ----------
    Y : CSR (n, L)
        Relevances; with several objectives, the maximum over them.
    names : list of str or None
    are_ids : bool
        Whether the names are numbers, without meaning.
    separator : str or None
        The separator of the labels of a row; `AUTO` if they were no texts.
    targets : dict of str to CSR (n, L)
        Relevances by objective, if there are several.
    table : LabelDescriptions or None
        What else is known of the L labels.
    """

    Y: sp.csr_matrix
    names: list[str] | None
    are_ids: bool
    separator: str | None
    targets: dict[str, sp.csr_matrix] = field(default_factory=dict)
    table: LabelDescriptions | None = None


@dataclass(frozen=True, eq=False)
class TrainingInput:
    """The checked arguments of a fit.

    Parameters
    ----------
    encoder : InputEncoder
        Encoder of the rows.
    X : features (n, d), encoded
    labels : Labels
    label_texts : list of str or None
        Longer texts of the labels.
    words : list of str or None
        The words of the columns of X.
    row_names : PackedStrings or None
    text_columns : list of str or None
        The columns of a file that the texts came from, where they were named.
    weight : float array (n,) or None
    excluded : Candidates or None
        Pairs that must not be candidates.
    aggregation : MultiObjectiveRanker or None
        How several objectives are aggregated.
    groups : int64 array (n,) or None
        Rows of the same number stay together in every fold.
    fold : int32 array (n,) or None
        The fold map, if it is given: values 0 .. K-1.
    pairs : Given or None
        What others say of pairs.
    candidates_mode : "only" or "union"
    negatives : Candidates or None
        Pairs that a person rejected, if there are any.
    """

    encoder: InputEncoder
    X: Features
    labels: Labels
    label_texts: Sequence[str] | None = None
    words: Sequence[str] | None = None
    row_names: PackedStrings | None = None
    text_columns: Sequence[str] | None = None
    weight: np.ndarray | None = None
    excluded: Candidates | None = None
    aggregation: MultiObjectiveRanker | None = None
    groups: np.ndarray | None = None
    fold: np.ndarray | None = None
    pairs: Given | None = None
    candidates_mode: str = "only"
    negatives: Candidates | None = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def has_features(self) -> bool:
        """Whether the rows have features; without, candidates are given."""
        return self.X.shape[1] > 0

    @property
    def n_labels(self) -> int:
        return int(self.labels.Y.shape[1])

    @property
    def label_vectors(self) -> LabelVectors | None:
        """The vectors of the labels in the space of X."""
        return vectors_in(self.encoder, self.labels.table)


def fold_map(given: TrainingInput, options: FitOptions) -> np.ndarray:
    """The fold of each training row, int32 (n,): the given map, or one that keeps copies and groups whole."""
    if given.fold is not None:
        return given.fold
    return fold_of_rows(given.n_rows, options.n_folds, options.seed, given.X, given.groups)


def check_given(X: Any, Y: Any, aggregation: MultiObjectiveRanker | None, table: Any = None) -> None:
    """Raise ValueError unless labels, and what is known of them, are given once: in a Dataset or beside."""
    if isinstance(X, Dataset):
        if table is not None and X.labels is not None:
            raise ValueError("labels must be left out where the Dataset holds a table of labels")
        if Y is not None and aggregation is None:
            raise ValueError("Y must be left out where X is a Dataset, which holds its labels")
    elif Y is None:
        raise ValueError("Y is required: MetaRanker requires y to be passed, but the target y is None")


def read_training(
    X: Any,
    Y: Any,
    *,
    sample_weight: Any,
    exclude: Any,
    n_labels: int | None,
    separator: str | None,
    aggregation: MultiObjectiveRanker | None,
    groups: Any = None,
    candidates_fold: Any = None,
    table: LabelDescriptions | None = None,
    language: str | None = None,
    text_part: str | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    candidates: Any = None,
    candidates_mode: str = "only",
    pair_features: Any = None,
    negatives: Any = None,
    blocks: Any = "auto",
) -> TrainingInput:
    """Check and encode the arguments of `MetaRanker.fit`; ValueError or TypeError names what is wrong."""
    _check_no_labels_in(X, Y)
    of_blocks = blocks_of(X, blocks)
    if of_blocks is not None:
        _check_two_rows("X", of_blocks.n_rows)
    encoder, features = encoded(X, Y, of_blocks, None if language == AUTO else language, blocks, text_part)
    texts = (None if X is None else texts_of(X)) if of_blocks is None else of_blocks.texts
    if language is not None and texts is None:
        raise ValueError(f"language must be None where X holds no texts, got {language!r}")
    if text_part is not None and (texts is None or of_blocks is not None):
        raise ValueError(f"text_part must be None unless X is texts, got {text_part!r}")
    _check_two_rows("Y" if X is None else "X", features.shape[0])
    if n_labels is None and table is None and candidates is not None:
        n_labels = _places_in(Y, candidates)
    labels = read_labels(X, Y, features.shape[0], n_labels, separator, aggregation, table)
    ids = None if labels.table is None else labels.table.ids
    known = LabelTable(labels.Y.shape[1], labels.names, ids=ids)
    pairs = read_given(candidates, pair_features, features.shape[0], known)
    check_has_pairs(pairs)
    vectors_in(encoder, labels.table)
    weight = check_sample_weight(sample_weight, features.shape[0])
    groups = check_groups(groups, features.shape[0])
    fold = check_fold_map(candidates_fold, features.shape[0])
    check_whole_groups(groups, fold)
    if language == AUTO:
        names, options = None if labels.are_ids else labels.names, {"seed": seed, "n_jobs": n_jobs}
        read = [shortened(text, text_part) for text in texts or []]
        found = chosen_language(read, labels.Y, names, groups=groups, **options)
        if found is not None:
            encoder, features = encoded(X, Y, of_blocks, found, blocks, text_part)
    excluded = None
    if exclude is not None:
        lists = check_lists(exclude, labels.Y.shape[0], known, "exclude")
        excluded = for_each_row(lists, *labels.Y.shape)
    row_names = short_names(X.titles or X.texts) if isinstance(X, Dataset) else None
    if row_names is None and encoder.vectorizer is not None:
        row_names = short_names(texts)
    if row_names is None and of_blocks is not None:
        row_names = short_names(of_blocks.first_texts)
    given = isinstance(X, Dataset)
    return TrainingInput(
        encoder,
        features,
        labels,
        label_texts=_texts_of(X, labels),
        words=X.feature_names if given else None,
        row_names=None if row_names is None else PackedStrings.of(row_names),
        text_columns=X.text_columns if given else None,
        weight=weight,
        excluded=excluded,
        aggregation=aggregation,
        groups=groups,
        fold=fold,
        pairs=pairs,
        candidates_mode=candidates_mode,
        negatives=None if negatives is None else read_negatives(negatives, labels, known),
    )


def _check_two_rows(name: str, n_rows: int) -> None:
    if n_rows < 2:
        got = "1 sample" if n_rows else "none"
        raise ValueError(f"{name} must have at least 2 rows, to hold one out, got {got}")


def _check_no_labels_in(X: Any, Y: Any) -> None:
    """ValueError if a column or block of X is Y, or a column of Y under its name: a leak."""
    columns = X.items() if isinstance(X, Mapping) else table_columns(X) or ()
    answers = table_columns(Y)
    for name, column in columns:
        if answers is None:
            leaks = not sp.issparse(Y) and np.ndim(column) == 1 and _same_cells(column, Y)
        else:
            leaks = any(name == other and _same_cells(column, answer) for other, answer in answers)
        if leaks:
            raise ValueError(f"X must not hold the labels, got column {name!r}, which is Y: leave it out")


def _same_cells(one: Any, other: Any) -> bool:
    """Whether two columns of at least two different values hold the same ones."""
    if not all(hasattr(of, "__len__") for of in (one, other)) or len(one) != len(other):
        return False
    pairs = zip(one, other)
    first = next(pairs, None)
    if first is None or not _same(*first):
        return False
    return all(_same(*pair) for pair in pairs) and any(not _same(first[0], value) for value in one)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, (np.ndarray, list, tuple)) or isinstance(other, (np.ndarray, list, tuple)):
        return np.shape(one) == np.shape(other) and list(one) == list(other)
    try:
        return bool(one == other)
    except TypeError:  # pandas.NA is equal to nothing, itself included
        return False


def _places_in(Y: Any, candidates: Any) -> int | None:
    """L, if matrices of candidates tell it and Y holds lists of integers, which are then places."""
    row = next((row for row in Y if len(row)), None) if isinstance(Y, (list, tuple)) and Y else None
    has_places = row is not None and not isinstance(row, str) and not isinstance(next(iter(row)), str)
    return width_of(candidates) if has_places else None


def blocks_of(X: Any, blocks: Any) -> Blocks | None:
    """The blocks of X, None if it is one table, matrix or list of texts; `blocks` is that of `MetaRanker`."""
    wanted = check_blocks(blocks)
    given = X.X if isinstance(X, Dataset) else X
    if holds_blocks(given) or (wanted and table_columns(given) is not None):
        return Blocks.of(given, wanted)
    if wanted:
        raise ValueError(
            f"blocks must be 'auto' where X has none, got {blocks!r:.80}: pass X as a dict or a data frame"
        )
    return None


def encoded(
    X: Any, Y: Any, of_blocks: Blocks | None, language: str | None, blocks: Any, text_part: str | None = None
) -> tuple[InputEncoder, Features]:
    """A fitted encoder, and the features of the training rows."""
    if of_blocks is None:
        encoder = InputEncoder(language, text_part)
        return encoder, _encoded(encoder, X, Y)
    languages = {name: block.language for name, block in check_blocks(blocks).items() if block is not None}
    joint = BlocksEncoder(language, {name: own for name, own in languages.items() if own is not None})
    return joint, joint.fit_encode(of_blocks)


def _encoded(encoder: InputEncoder, X: Any, Y: Any) -> Features:
    """The features of the rows; of none where X is None."""
    if X is not None:
        return encoder.fit_encode(X)
    encoder.fit_nothing()
    of = next(iter(Y.values())) if isinstance(Y, Mapping) and Y else Y
    return np.zeros((of.shape[0] if hasattr(of, "shape") else len(of), 0), np.float32)


def read_negatives(negatives: Any, labels: Labels, table: LabelTable) -> Candidates | None:
    """The rejected pairs of the training rows; None if there are none.

    Raises
    ------
    ValueError, TypeError
        If they are malformed, a rejected pair is relevant too, or there are several objectives.
    """
    if labels.targets:
        raise ValueError("negatives must be left out where Y holds several objectives")
    rejected = check_rejected(negatives, labels.Y, table)
    return rejected if rejected.n_pairs else None


def read_labels(
    X: Any,
    Y: Any,
    n_rows: int,
    n_labels: int | None,
    separator: str | None,
    aggregation: MultiObjectiveRanker | None,
    table: LabelDescriptions | None = None,
) -> Labels:
    """The labels of Y, or of the Dataset X, and those of the table. A note says how they were interpreted."""
    dataset = X if isinstance(X, Dataset) else None
    sizes: dict[str, Any] = {"n_rows": n_rows, "n_labels": n_labels}
    sizes["label_names"] = None if dataset is None else dataset.label_names
    targets: dict[str, sp.csr_matrix] = {}
    if dataset is not None:
        if not same_separator(separator, dataset.label_separator):
            raise ValueError(
                f"label_separator={separator!r} must be that of the Dataset, in which "
                f"{described(dataset.label_separator)}: pass it to what reads the data"
            )
        separator = dataset.label_separator if separator == AUTO else separator
    if aggregation is None:
        given, separator = cut_labels(Y if dataset is None else dataset.Y, separator)
        relevance, names, kind = check_labels(given, **sizes)
        if relevance.nnz == 0:
            raise ValueError(f"Y must hold a relevant label, got none in {relevance.shape[0]} rows")
        if relevance.nnz == relevance.shape[0] * relevance.shape[1]:
            warnings.warn(
                f"Y has all {relevance.shape[1]} labels relevant in all {relevance.shape[0]} rows: are these "
                "relevances, 0 where a label is not relevant?",
                stacklevel=outside(),
            )
    else:
        targets, relevance, names, kind = check_targets(Y, model=aggregation, **sizes)
    if separator != AUTO:
        note(f"labels: {described(separator)}")
    are_ids = kind == "ids" or (dataset is not None and dataset.label_names_are_ids)
    if are_ids and names:
        note(
            f"labels: integers are names, {len(names)} from {names[0]} to {names[-1]}; n_labels makes them "
            "places"
        )
    elif kind == "lists" and names is None:
        note(f"labels: integers are places in [0, {n_labels})")
    found = Labels(relevance, None if names is None else list(names), are_ids, separator, targets)
    if dataset is not None and dataset.labels is not None:  # which has a column for each of its labels
        return replace(found, table=dataset.labels)
    return found if table is None else _in_table(found, table)


def _in_table(labels: Labels, table: LabelDescriptions) -> Labels:
    """The labels of Y among those of a table, which are all labels."""
    Y, whole = table.covering(labels.Y, labels.names)
    n_new = len(whole) - len(table)
    note(f"labels: {len(table)} of the table" + (f", and {n_new} that it lacks" if n_new else ""))
    targets = {name: whole.covering(target, labels.names)[0] for name, target in labels.targets.items()}
    are_ids = labels.are_ids and not whole.has_names
    return Labels(Y, list(whole.shown_names), are_ids, labels.separator, targets, whole)


def _texts_of(X: Any, labels: Labels) -> Sequence[str] | None:
    """The longer texts of the labels."""
    if labels.table is not None:
        return labels.table.descriptions
    return X.label_texts if isinstance(X, Dataset) else None


def short_names(texts: Sequence[str] | None) -> list[str] | None:
    """The beginning of each training text, by which explanations name neighbours."""
    if texts is None:
        return None
    return [" ".join(t[:200].split())[:80] for t in texts]
