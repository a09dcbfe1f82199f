"""`TrainingInput`: the arguments of a fit, checked and encoded."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank._util.modules import outside
from metarank._util.parameters import seed_of
from metarank._util.progress import as_part, note
from metarank.data.block_encoder import BlocksEncoder, EncodedBlock
from metarank.data.blocks import Blocks, holds_blocks
from metarank.data.dataset import Dataset, under_names
from metarank.data.encoder import InputEncoder, texts_of
from metarank.data.label_files import read_labels as as_labels
from metarank.data.meaning import Encoder, with_meaning, written_of
from metarank.data.separators import AUTO, described, split_labels
from metarank.model.fitting.auto import FitOptions, is_auto
from metarank.model.fitting.encoding import chosen_language
from metarank.objectives import check_weights
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.types.candidates import Candidates
from metarank.types.checks import (
    LabelKind,
    check_labels,
    check_same_order,
    check_sample_weight,
    check_writable,
)
from metarank.types.containers import table_columns
from metarank.types.given import Given, check_has_pairs, check_rejected, read_given, width_of
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.label_names import LabelVectors
from metarank.types.label_table import LabelTable
from metarank.types.restrict import check_lists, for_each_row
from metarank.types.row_groups import check_fold_map, check_groups, check_whole_groups
from metarank.types.texts import PackedStrings
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
        The separator of the labels of a row; `AUTO` if they were not texts.
    targets : dict of str to CSR (n, L)
        Relevances by objective, if there are several.
    table : LabelDescriptions or None
        What else is known of the L labels.
    texts : list of str or None
        Longer texts of labels without a table.
    """

    Y: sp.csr_matrix
    names: list[str] | None
    are_ids: bool
    separator: str | None
    targets: dict[str, sp.csr_matrix] = field(default_factory=dict)
    table: LabelDescriptions | None = None
    texts: Sequence[str] | None = None

    @property
    def longer(self) -> Sequence[str] | None:
        """The longer texts of the labels."""
        return self.texts if self.table is None else self.table.descriptions

    @property
    def words(self) -> Sequence[str] | None:
        """The names that say something of the labels: no numbers, and no ids of labels without a name."""
        if self.are_ids:
            return None
        return self.table.names if self.table is not None and self.table.has_names else self.names

    @cached_property
    def known(self) -> LabelTable:
        """What labels are called by."""
        ids = None if self.table is None else self.table.ids
        return LabelTable(self.Y.shape[1], self.names, ids=ids, advice="; labels= can name more labels")

    @property
    def others(self) -> Sequence[Sequence[str]] | None:
        """The alternative names of each label."""
        return None if self.table is None else self.table.alternative_names


@dataclass(frozen=True, eq=False)
class TrainingInput:
    """The checked arguments of a fit.

    Parameters
    ----------
    encoder : InputEncoder
        Encoder of the rows.
    X : features (n, d), encoded
    labels : Labels
    options : FitOptions
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
    texts : list of str or None
        The texts of the rows, where X is texts alone.
    """

    encoder: InputEncoder
    X: Features
    labels: Labels
    options: FitOptions
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
    texts: Sequence[str] | None = None

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

    @property
    def fold_map(self) -> np.ndarray:
        """The fold of each row, int32 (n,): the given map, or one that keeps copies and groups whole."""
        if self.fold is not None:
            return self.fold
        return fold_of_rows(self.n_rows, self.options.n_folds, self.options.seed, self.X, self.groups)


MODES = ("only", "union")


class FitArguments(NamedTuple):
    """What `MetaRanker.fit` takes beside X and Y, by the same names and in the same order."""

    sample_weight: Any
    exclude: Any
    objectives: str | MultiObjectiveRanker | None
    n_labels: int | None
    groups: Any
    candidates: Any
    candidates_mode: str
    folds: Any
    labels: Any
    pair_features: Any
    negatives: Any


def _table_alone(X: Any, Y: Any, asked: FitArguments) -> LabelDescriptions | None:
    """The table of labels, if there is one and no row has a label.

    ValueError for an argument that only rows with labels have a use for.
    """
    own, has_labels = (X.labels, X.Y.nnz) if isinstance(X, Dataset) else (None, 0)
    if Y is not None or has_labels or (own is None) == (asked.labels is None):
        return None
    for name, value in asked._asdict().items():
        if not (value is None or name == "labels" or (name == "candidates_mode" and value == "only")):
            raise ValueError(
                f"{name} must be left out where no row has labels, got {value!r:.80}: it needs Y"
            )
    return as_labels(asked.labels) if own is None else own


def check_arguments(X: Any, Y: Any, asked: FitArguments, options: FitOptions) -> MultiObjectiveRanker | None:
    """The aggregation of several objectives, if Y is a dict of them.

    Raises
    ------
    ValueError, TypeError
        If arguments contradict each other or the parameters: labels, and what is known of them, are given
        once, in a Dataset or beside it; a fit of lists of points has what it can learn from; and the sources
        that are asked for have what they read.
    """
    aggregation = check_objectives(Y, asked.objectives, ranker=options.ranker, random_state=options.seed)
    if isinstance(X, Dataset):
        if asked.labels is not None and X.labels is not None:
            raise ValueError("labels must be left out if the Dataset has a table of labels")
        if Y is not None and aggregation is None:
            raise ValueError("Y must be left out if X is a Dataset with labels")
    elif Y is None:
        raise ValueError("Y, or labels, is required: fit requires y to be passed, but the target y is None")
    if options.labelwise and asked.sample_weight is not None:
        raise ValueError("sample_weight must be None with labelwise=True")
    if options.labelwise and aggregation is not None:
        raise ValueError("labelwise must be False with several objectives, got True")
    mode, has_candidates = asked.candidates_mode, asked.candidates is not None
    if mode not in MODES:
        raise ValueError(f"candidates_mode must be one of {', '.join(MODES)}, got {mode!r:.80}")
    if not has_candidates and mode != "only":
        raise ValueError(f"candidates_mode={mode!r} needs candidates, got None")
    if not has_candidates and X is None:
        raise ValueError("X is required unless candidates are given, got None")
    if has_candidates and mode == "only" and not is_auto(options.shortlister):
        raise ValueError(
            "shortlister must be 'auto' with candidates, unless candidates_mode='union', got "
            f"{options.shortlister!r:.80}"
        )
    for name, value in {"features": options.features, "shortlister": options.shortlister}.items():
        if not (X is not None or value is None or is_auto(value)):
            raise ValueError(f"{name} must be 'auto' where X is None, got {value!r:.80}")
    return aggregation


def read_training(X: Any, Y: Any, asked: FitArguments, options: FitOptions) -> TrainingInput:
    """Check and encode the arguments of `MetaRanker.fit`; ValueError or TypeError names what is wrong."""
    alone = _table_alone(X, Y, asked)
    aggregation = None if alone else check_arguments(X, Y, asked, options)
    table = alone or (None if asked.labels is None else as_labels(asked.labels))
    X = written_of(alone) if alone and X is None else X
    check_same_order(X=X, Y=Y, sample_weight=asked.sample_weight, groups=asked.groups)
    _check_no_labels_in(X, Y)
    dataset, language = X if isinstance(X, Dataset) else None, options.language
    of_blocks = blocks_of(X)
    texts = (None if X is None else texts_of(X)) if of_blocks is None else of_blocks.texts
    meaning = loaded_encoder(options.encoder, texts)
    if meaning is not None and texts is not None:
        of_blocks = of_blocks or Blocks({"text": texts}, {"text": "text"})
    if language == AUTO:
        language = None if texts is None else chosen_language(texts)
    with as_part("reading", 0.0, 0.01):
        encoder, features = encoded(X, Y, of_blocks, language, meaning)
    n_rows = int(features.shape[0])
    if language is not None and texts is None:
        raise ValueError(f"language must be None if X has no texts, got {language!r}")
    _check_two_rows("Y" if X is None else "X", n_rows + bool(alone))
    n_labels = asked.n_labels
    if n_labels is None and table is None and asked.candidates is not None:
        n_labels = _places_in(Y, asked.candidates)
    labels = read_labels(None if alone else dataset, Y, n_rows, n_labels, aggregation, table)
    labels = _with_vectors(labels, meaning)
    words = None if dataset is None else dataset.feature_names
    _tell_of_names(labels, texts is not None, words, sp.issparse(X if dataset is None else dataset.X))
    pairs = read_given(asked.candidates, asked.pair_features, n_rows, labels.known)
    check_has_pairs(pairs)
    _check_relevant(pairs, labels.Y, asked.candidates_mode)
    vectors_in(encoder, labels.table)
    groups, fold = check_groups(asked.groups, n_rows), check_fold_map(asked.folds, n_rows)
    check_whole_groups(groups, fold)
    if options.names:
        others = (name for names in labels.others or () for name in names)
        features = encoder.with_words_of([*(labels.words or ()), *others], features)
    texts, excluded = None if encoder.word_reader is None else texts, None
    if asked.exclude is not None:
        lists = check_lists(asked.exclude, n_rows, labels.known, "exclude")
        excluded = for_each_row(lists, *labels.Y.shape)
    return TrainingInput(
        encoder,
        features,
        labels,
        options,
        words=words,
        row_names=row_names(X, texts, of_blocks),
        text_columns=None if dataset is None else dataset.text_columns,
        weight=check_sample_weight(asked.sample_weight, n_rows),
        excluded=excluded,
        aggregation=aggregation,
        groups=groups,
        fold=fold,
        pairs=pairs,
        candidates_mode=asked.candidates_mode,
        negatives=None if asked.negatives is None else read_negatives(asked.negatives, labels),
        texts=texts,
    )


def loaded_encoder(given: Any, texts: Sequence[str] | None) -> Encoder | None:
    """The encoder that a user gave, ready to encode; ValueError where there are no texts."""
    if given is None:
        return None
    if texts is None:
        raise ValueError(f"encoder must be None if X has no texts, got {given!r:.80}")
    encoder = Encoder.of(given).load()
    note(encoder.described())
    return encoder


def _with_vectors(labels: Labels, meaning: Encoder | None) -> Labels:
    """Labels with names, and the vectors of these."""
    if meaning is None or labels.words is None:
        return labels
    own = labels.table or LabelDescriptions(names=labels.names, descriptions=labels.texts)
    return replace(labels, table=with_meaning(own, meaning), texts=None)


def row_names(X: Any, texts: Sequence[str] | None, of_blocks: Blocks | None) -> PackedStrings | None:
    """What explanations call the rows of X: the beginnings of their titles, or of their texts."""
    shown: Sequence[str] | None = X.titles or X.texts if isinstance(X, Dataset) else None
    if shown is None:
        shown = texts
    if shown is None and of_blocks is not None and of_blocks.text_names:
        shown = of_blocks.parts[of_blocks.text_names[0]]
    if shown is None:
        return None
    return PackedStrings.of([" ".join(text[:200].split())[:80] for text in shown])


def _check_relevant(pairs: Given | None, Y: sp.csr_matrix, mode: str) -> None:
    """ValueError if candidates are all there is, and none of them is relevant."""
    if pairs is None or not pairs.scores or mode != "only":
        return
    if not any(pairs.candidates(source).values_of(Y).any() for source in pairs.scores):
        raise ValueError(
            f"candidates must list a relevant label of some row, got none in {pairs.n_rows} rows: do their "
            "rows and labels agree with Y?"
        )


def _check_two_rows(name: str, n_rows: int) -> None:
    if n_rows < 2:
        got = "1 sample" if n_rows else "none"
        raise ValueError(f"{name} must have at least 2 rows, to hold one out, got {got}")


def _check_no_labels_in(X: Any, Y: Any) -> None:
    """ValueError if a column or block of X is Y, or a column of Y under its name: a leak."""
    columns = X.items() if isinstance(X, Mapping) else table_columns(X) or ()
    answers = table_columns(Y)
    answer_of = None if answers is None else dict(answers)
    for name, column in columns:
        if _same_cells(column, Y if answer_of is None else answer_of.get(name)):
            raise ValueError(f"X must not hold the labels, got column {name!r}, which is Y: leave it out")


def _same_cells(one: Any, other: Any) -> bool:
    """Whether two columns of at least two different values hold the same ones."""
    if any(not hasattr(of, "__len__") or sp.issparse(of) for of in (one, other)) or len(one) != len(other):
        return False
    a, b = (np.asarray(of, object) for of in (one, other))
    try:
        return a.shape == b.shape and len(a) > 0 and bool((a == b).all() and not (a == a[:1]).all())
    except (TypeError, ValueError):  # pandas.NA is equal to nothing, itself included
        return False


def _places_in(Y: Any, candidates: Any) -> int | None:
    """L, if matrices of candidates tell it and Y holds lists of integers, which are then places."""
    row = next((row for row in Y if len(row)), None) if isinstance(Y, (list, tuple)) and Y else None
    has_places = row is not None and not isinstance(row, str) and not isinstance(next(iter(row)), str)
    return width_of(candidates) if has_places else None


def blocks_of(X: Any) -> Blocks | None:
    """The blocks of X, None if it is one table of numbers, a matrix or a list of texts."""
    given = X.X if isinstance(X, Dataset) else X
    if not holds_blocks(given):
        return None
    blocks = Blocks.of(given)
    _check_two_rows("X", blocks.n_rows)
    return blocks


def encoded(
    X: Any, Y: Any, of_blocks: Blocks | None, language: str | None, meaning: Encoder | None = None
) -> tuple[InputEncoder, Features]:
    """A fitted encoder, and the features of the training rows; none where X is None."""
    if of_blocks is not None:
        joint = BlocksEncoder(language, meaning)
        return joint, joint.fit_encode(of_blocks)
    encoder = InputEncoder(language)
    if X is not None:
        return encoder, encoder.fit_encode(X)
    of = next(iter(Y.values())) if isinstance(Y, Mapping) and Y else Y
    n_rows = of.shape[0] if hasattr(of, "shape") else len(of)
    return encoder, encoder.fit_as_they_are(np.zeros((n_rows, 0), np.float32))


def read_negatives(negatives: Any, labels: Labels) -> Candidates | None:
    """The rejected pairs of the training rows; None if there are none.

    Raises
    ------
    ValueError, TypeError
        If they are malformed, a rejected pair is relevant too, or there are several objectives.
    """
    if labels.targets:
        raise ValueError("negatives must be left out with several objectives")
    rejected = check_rejected(negatives, labels.Y, labels.known)
    return rejected if rejected.n_pairs else None


def _tell_of_names(labels: Labels, has_texts: bool, words: Sequence[str] | None, is_sparse: bool) -> None:
    """A note of what names of labels, or words of rows, would be read if they were given."""
    if has_texts and labels.names is None:
        note("labels: without names; pass labels=[...] to compare them with the texts")
    elif has_texts or not is_sparse or labels.words is None:
        return
    elif words is None:
        note("labels: names are not read, since X has no words: texts have them, or Dataset(feature_names=)")
    else:
        note("labels: names are compared word by word; mentions need X as texts")


def read_labels(
    dataset: Dataset | None,
    Y: Any,
    n_rows: int,
    n_labels: int | None,
    aggregation: MultiObjectiveRanker | None,
    table: LabelDescriptions | None = None,
) -> Labels:
    """The labels of Y, or of the data set, and those of the table; without both, of the table alone. A note
    says how they were interpreted."""
    if dataset is None and Y is None and table is not None:
        of_none = sp.csr_matrix((n_rows, len(table)), dtype=np.float32)
        return Labels(of_none, list(table.shown_names), False, AUTO, table=table)
    sizes: dict[str, Any] = {"n_rows": n_rows, "n_labels": n_labels}
    sizes["label_names"] = None if dataset is None else dataset.label_names
    targets: dict[str, sp.csr_matrix] = {}
    separator = AUTO if dataset is None else dataset.label_separator
    if aggregation is None:
        given, separator = split_labels(Y if dataset is None else dataset.Y, separator)
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
            "ids"
        )
    elif kind == "lists" and names is None:
        note(f"labels: integers are ids in [0, {n_labels})")
    labels = Labels(relevance, None if names is None else list(names), are_ids, separator, targets)
    if dataset is not None:  # a table of its own has its labels
        labels = replace(labels, table=dataset.labels, texts=dataset.label_texts)
        if dataset.labels is not None:
            return labels
    return labels if table is None else _in_table(labels, table)


def _in_table(labels: Labels, table: LabelDescriptions) -> Labels:
    """The labels of Y among those of a table, which are all labels."""
    Y, complete = table.covering(labels.Y, labels.names)
    n_new = len(complete) - len(table)
    note(f"labels: {len(table)} of the table" + (f", and {n_new} that it lacks" if n_new else ""))
    targets = {name: complete.covering(target, labels.names)[0] for name, target in labels.targets.items()}
    are_ids = labels.are_ids and not complete.has_names
    return Labels(Y, list(complete.shown_names), are_ids, labels.separator, targets, complete)


def check_objectives(
    Y: Any, objectives: Any, *, ranker: Any, random_state: int
) -> MultiObjectiveRanker | None:
    """The aggregation of several targets; None if Y is not a dict of targets.

    Raises
    ------
    ValueError, TypeError
        If `objectives` is not an aggregation, or is given without targets or together with a `ranker`.
    """
    if not isinstance(Y, Mapping) or sp.issparse(Y):  # a DOK matrix is a mapping too
        if objectives is not None:
            raise ValueError("objectives needs several targets: Y must be a dict of them by objective")
        return None
    if not is_auto(ranker):
        raise ValueError(f"ranker must be 'auto' with several objectives, got {ranker!r}")
    if isinstance(objectives, MultiObjectiveRanker):
        model = objectives
        if not isinstance(model.random_state, Integral):
            model = clone(model).set_params(random_state=seed_of(model.random_state))
    elif objectives is None or isinstance(objectives, str):
        model = MultiObjectiveRanker(
            objectives or "label",  # type: ignore[arg-type]  # checked below
            random_state=random_state,
            label_gain="linear",
            n_rounds=120,
            params={"num_leaves": 15, "lambda_l2": 5.0, "feature_fraction": 0.5, "max_bin": 63},
        )
    else:
        raise TypeError(
            f"objectives must name an aggregation or be a MultiObjectiveRanker, got {objectives!r:.80}"
        )
    model.settings()  # refuses what is wrong
    return model


def check_targets(
    Y: Mapping[str, Any],
    n_rows: int,
    label_names: Sequence[str] | None,
    model: MultiObjectiveRanker,
    n_labels: int | None = None,
) -> tuple[dict[str, sp.csr_matrix], sp.csr_matrix, list[str] | None, LabelKind]:
    """Each target as CSR (n, L), their sum, the names of the labels, and "ids" if these are integers.

    Targets given by label names may have different labels; L counts all of them.

    Raises
    ------
    ValueError, TypeError
        No objective, names that are not strings; what `check_labels` refuses; targets of other labels or
        widths; an objective without a relevant label, or that is the same for all pairs; weights that do
        not fit.
    """
    if not Y:
        raise ValueError("Y must hold at least one objective, got an empty dict")
    for name in Y:
        if not isinstance(name, str) or not name:
            raise TypeError(f"Y must have the names of objectives as keys, got {name!r}")
        check_writable(name, "the objectives of Y")
    checked = {
        name: check_labels(of, n_rows=n_rows, n_labels=n_labels, label_names=label_names, name=f"Y[{name!r}]")
        for name, of in Y.items()
    }
    # Beside a matrix, which has places of labels, integers in lists are such.
    widths = [of.shape[1] for of, names, _ in checked.values() if names is None]
    for name, (_, _, kind) in list(checked.items()) if widths else ():
        if kind == "ids":
            places = {"n_rows": n_rows, "n_labels": max(widths), "ids": "positions"}
            checked[name] = check_labels(Y[name], name=f"Y[{name!r}]", **places)
    named = [names for _, names, _ in checked.values() if names is not None]
    are_ids = all(kind == "ids" for _, _, kind in checked.values())
    if named and len(named) < len(checked):
        raise ValueError("Y must name the labels in all objectives or in none")
    names = None
    if named:
        every = {label for names_here in named for label in names_here}
        same = all(list(names_here) == list(named[0]) for names_here in named)
        names = list(named[0]) if same else sorted(every, key=int if are_ids else None)
    targets: dict[str, sp.csr_matrix] = {}
    n_labels = max(of.shape[1] for of, _, _ in checked.values()) if names is None else len(names)
    for name, (of, names_here, _) in checked.items():
        if names_here is not None and names is not None and list(names_here) != names:
            of = under_names(of, names_here, names)
        if of.shape[1] != n_labels:
            raise ValueError(f"Y[{name!r}] must have {n_labels} labels as others have, got {of.shape[1]}")
        if of.nnz == 0:
            raise ValueError(f"Y[{name!r}] must hold a relevant label, got none")
        if of.nnz == n_rows * n_labels and of.data.min() == of.data.max():
            raise ValueError(
                f"Y[{name!r}] must tell pairs apart, got {of.data[0]:g} for every label of every row"
            )
        targets[name] = of
    check_weights(model.weights, len(targets), names=list(targets))
    total = sp.csr_matrix(sum(targets.values(), sp.csr_matrix((n_rows, n_labels), dtype=np.float32)))
    total.sum_duplicates()
    return targets, total.astype(np.float32), names, "ids" if are_ids else "indicator"


_RULE = "vectors of labels must be in the space of"


def vectors_in(encoder: InputEncoder, table: LabelDescriptions | None) -> LabelVectors | None:
    """The vectors of a table in the space of encoded X; None if there are none.

    Raises
    ------
    ValueError
        If X is not dense, or of another width; of several blocks, unless one block of vectors has the width.
    """
    if table is None or table.vectors is None:
        return None
    width = table.vectors.shape[1]
    if isinstance(encoder, BlocksEncoder) and len(encoder.parts) > 1:
        part = block_of_vectors(encoder, width)
        start = next((block.start for block in encoder.columns if block.name == part.name), None)
        return None if start is None else LabelVectors(table.vectors, start, part.encoder.transform.scale)
    if encoder.layout != "dense":
        raise ValueError(f"{_RULE} dense X, got vectors of {width} numbers, and texts or sparse features")
    if encoder.n_features != width:
        raise ValueError(
            f"{_RULE} dense X, which has {encoder.n_features} columns, got vectors of {width} numbers"
        )
    return LabelVectors(table.vectors, 0, encoder.transform.scale)


def block_of_vectors(encoder: BlocksEncoder, width: int) -> EncodedBlock:
    """The block of vectors of a width, that of texts first; ValueError unless there is exactly one."""
    vectors = [part for part in encoder.parts if part.kind == "vector"]
    fitting = [part for part in vectors if part.encoder.n_features == width]
    fitting = [part for part in fitting if part.is_made] or fitting
    if len(fitting) != 1:
        widths = ", ".join(f"{part.name!r} ({part.encoder.n_features})" for part in vectors) or "none"
        raise ValueError(f"{_RULE} one block of X, got {width} numbers; blocks of vectors: {widths}")
    return fitting[0]
