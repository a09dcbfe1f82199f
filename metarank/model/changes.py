"""Labels that are added, removed, renamed or merged, and rows that are added, without a new fit.

`_training_set` gathers what the sources keep of the rows and labels that they learned from. Both changes edit
it, and `_updated` has each source learn from it again. Sources that are sums or lists of training rows
(neighbours, centroids, priors, propensities, the index of label names) are then as if fitted anew. It takes
seconds. Trained parts do not change (`metarank.scorers.wrapped`). Label ids do not change: new labels
are appended, and a removed label is never proposed. Its id is used again only for a new label of its name.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank._util.modules import outside
from metarank._util.printable import first_few
from metarank.data.block_encoder import BlocksEncoder
from metarank.data.blocks import holds_blocks
from metarank.data.dataset import Dataset
from metarank.data.encoder import InputEncoder, texts_of
from metarank.data.label_files import read_columns
from metarank.data.meaning import encoded_by, with_meaning
from metarank.data.word_order import name_forms
from metarank.metrics.propensity import inv_propensity
from metarank.model.answering.measure import aligned_relevance
from metarank.model.fitted import FittedModel
from metarank.model.fitting.inputs import row_names, vectors_in
from metarank.scorers.base import LabelScorer
from metarank.scorers.neighbors.prior import smoothed_shares
from metarank.scorers.source import with_scorers
from metarank.scorers.wrapped import KeptScorer
from metarank.types.arrays import dense
from metarank.types.block_columns import side_by_side, with_rest
from metarank.types.checks import check_same_order, check_writable
from metarank.types.given import check_rejected
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.label_names import OtherNames
from metarank.types.label_table import relabeled
from metarank.types.suggested import MissingPairs
from metarank.types.texts import NameForms, PackedStrings
from metarank.types.view import Features, TrainingSet

_OBJECTIVES = "a model of several objectives does not change its rows or labels: refit"
# A name and a longer text.
Text = tuple[str, str | None]


class LabelChange(NamedTuple):
    """A checked change of the labels.

    Attributes
    ----------
    now : int32 array (L before,)
        Id of each label after the change; -1 if it was removed.
    names : list of str or None
        Names after the change, including those of removed labels.
    texts : dict of id to (name, text or None)
        The texts of labels that are new or renamed, to be indexed.
    n_labels : int
        L after the change.
    removed : int32 array
        Ids of removed labels, ascending.
    merged : int32 array (m, 2) or None
        Removed labels and those that they were merged into, in this change or an earlier one.
    table : LabelDescriptions or None
        What is known of the labels after the change.
    old_names : dict of str to id
        Names that labels had before, in this change or an earlier one.
    """

    now: np.ndarray
    names: list[str] | None
    texts: dict[int, Text]
    n_labels: int
    removed: np.ndarray
    merged: np.ndarray | None
    table: LabelDescriptions | None
    old_names: dict[str, int]


# --- what is asked for ----------------------------------------------------------------


def checked_change(model: FittedModel, add: Any, remove: Any, rename: Any, merge: Any) -> LabelChange:
    """The arguments of `MetaRanker.update_labels`, checked; ValueError or TypeError names what is wrong."""
    n, id_of = model.n_labels, model.label_table.id_of
    texts = {id_of(old, "rename"): _text(new, "rename") for old, new in _mapping(rename, "rename").items()}
    merged = {id_of(a, "merge"): id_of(b, "merge") for a, b in _mapping(merge, "merge").items()}
    gone = {id_of(label, "remove") for label in _sequence(remove, "remove")}
    times = Counter([*texts, *gone, *merged])
    clashes = [label for label in times if times[label] > 1]
    clashes += [new for new in merged.values() if new in merged or new in gone]
    if clashes:
        raise ValueError(
            "remove, rename and merge must hold a label once, and merge only into labels that remain, got "
            f"{clashes[0]}"
        )
    names = list(model.label_names or [""] * n)
    for label, (name, _) in texts.items():
        if model.label_names is None:
            raise ValueError("rename must be left out, since the labels of this model have no names")
        names[label] = name
    uses = Counter(name.strip() for name in names)
    for name, _ in texts.values():
        if uses[name.strip()] > 1:
            raise ValueError(f"rename must give names that no other label has, blanks aside, got {name!r}")
    now = np.arange(n, dtype=np.int32)
    now[[*model.removed, *gone]] = -1
    for old, new in merged.items():
        now[old] = new
    removed = {*model.removed.tolist(), *gone, *merged}
    place = {name.strip(): label for label, name in enumerate(names) if name.strip()}
    added: dict[int, dict[str, Any]] = {}
    for record in _new_labels(model, add):
        name = record["names"]
        label = place.setdefault(name.strip(), len(names)) if name else len(names)
        if label < len(names) and label not in removed:
            if not record.get("ids") or str(record["ids"]) in model.label_table:
                raise ValueError(f"add must hold new names or new ids, got {name!r}, which is taken")
            label = len(names)  # ids tell labels of one name apart
        names[label : label + 1] = [name]
        removed.discard(label)
        texts[label], added[label] = (name, record.pop("descriptions", None) or None), record
    left = np.array(sorted(removed), np.int32)
    if len(left) == len(names):
        raise ValueError("remove must leave a label, it removes all of them")
    table = None
    if model.labels is not None:
        meaning = getattr(model.encoder, "meaning", None)
        encoded = encoded_by(meaning, model.labels, [label for label in texts if label < n])
        table = _changed_table(model.labels, len(names), texts, added, merged, encoded)
        table = table if meaning is None else with_meaning(table, meaning)
    earlier = [] if model.merged is None else [(old, int(now[new])) for old, new in model.merged.tolist()]
    into = [(old, new) for old, new in sorted([*earlier, *merged.items()]) if old in removed and new >= 0]
    into_ids = np.array(into, np.int32) if into else None
    kept_names = None if model.label_names is None else names
    before = dict(model.label_table.old_names) | {
        model.label_names[label]: label for label in texts if model.label_names and label < n
    }
    old_names = {
        name: int(now[label]) for name, label in before.items() if now[label] >= 0 and name not in names
    }
    return LabelChange(now, kept_names, texts, len(names), left, into_ids, table, old_names)


def _new_labels(model: FittedModel, add: Any) -> list[dict[str, Any]]:
    """What is said of each new label, by the parameters of `LabelDescriptions`, its name among it."""
    if add is None:
        return []
    if model.label_names is None:
        if not isinstance(add, Integral) or isinstance(add, bool) or add < 0:
            raise ValueError(
                f"add must be a number of labels >= 0, since labels have no names, got {add!r:.80}"
            )
        return [{"names": ""} for _ in range(int(add))]
    if isinstance(add, Mapping):
        texts = [_text(pair, "add") for pair in add.items()]
        return [{"names": name, "descriptions": text} for name, text in texts]
    holds_records = isinstance(add, Sequence) and any(isinstance(entry, Mapping) for entry in add)
    if isinstance(add, (Sequence, set, np.ndarray, Integral)) and not holds_records:
        return [{"names": _text((name, None), "add")[0]} for name in _sequence(add, "add")]
    if model.labels is None:
        raise ValueError("add must hold names, or be a dict of them, since this model has no table of labels")
    records = _records(add.columns() if isinstance(add, LabelDescriptions) else read_columns(add))
    for record in records:
        record["names"] = record.get("names") or str(record["ids"])
        check_writable(record["names"], "add")
    return records


def _records(columns: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values)) for values in zip(*columns.values())]


def _text(value: Any, parameter: str) -> Text:
    """A name, or a pair of a name and a text."""
    name, text = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
    if not isinstance(name, str) or not (text is None or isinstance(text, str)):
        raise TypeError(f"{parameter} must hold names, with texts or without, got {value!r:.80}")
    if not name.strip():
        raise ValueError(f"{parameter} must hold names, got an empty one")
    check_writable(name, parameter)
    return name, text


def _mapping(value: Any, parameter: str) -> Mapping[Any, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"{parameter} must be a dict from labels, got {value!r:.80}")
    return value or {}


def _sequence(value: Any, parameter: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, (str, bytes)) or not isinstance(value, (Sequence, set, np.ndarray)):
        raise TypeError(f"{parameter} must be a list of labels, got {value!r:.80}")
    return list(value)


def _changed_table(
    table: LabelDescriptions,
    n_labels: int,
    texts: Mapping[int, Text],
    added: Mapping[int, Mapping[str, Any]],
    merged: Mapping[int, int],
    encoded: Container[int],
) -> LabelDescriptions:
    """The table with new and renamed labels, without the vectors of those that are `encoded`; a merged label
    gives its names, and the labels below it."""
    labels = _records(table.columns())
    labels += [{} for _ in range(n_labels - len(labels))]
    for label, (name, text) in texts.items():
        record = labels[label]
        record |= {"names": name, "descriptions": text, "ids": record.get("ids") or name}
        record |= {"vectors": None} if label in encoded else {}
        _name_otherwise(record, record.get("alternative_names"))
        record |= {column: value for column, value in added.get(label, {}).items() if value is not None}
    for old, new in merged.items():
        others = [labels[label].get("alternative_names") or [] for label in (new, old)]
        _name_otherwise(labels[new], [*others[0], labels[old]["names"], *others[1]])
    instead = {labels[old]["ids"]: labels[new]["ids"] for old, new in merged.items()}
    for label, record in enumerate(labels):
        for column in {"parents", "related"} & record.keys() if merged else ():
            linked = dict.fromkeys(instead.get(other, other) for other in record[column] or ())
            record[column] = [other for other in linked if other != record["ids"] and label not in merged]
    known = {column for record in labels for column, value in record.items() if value is not None}
    return LabelDescriptions(**{column: [record.get(column) for record in labels] for column in known})


def _name_otherwise(record: dict[str, Any], others: Sequence[str] | None) -> None:
    """Gives a label these alternative names, each once, without its name and empty ones."""
    if others:
        distinct = dict.fromkeys(name.strip() for name in others)
        record["alternative_names"] = [name for name in distinct if name not in ("", record["names"].strip())]


# --- changed models ----------------------------------------------------------------


def changed_labels(model: FittedModel, change: LabelChange, n_jobs: int) -> FittedModel:
    """The model after a change of its labels."""
    before, table, n_labels = _training_set(model), change.table, change.n_labels
    Y = relabeled(before.Y, change.now, n_labels)
    Y.data[:] = 1
    texts = {
        source: _changed_text(text, change, _rows_of(model.encoder, source))
        for source in ("label_text", "label_spelling")
        if (text := getattr(before, source)) is not None
    }
    others = before.other_names
    if table is not None and table.alternative_names is not None:
        names = [[] if i in change.removed else several for i, several in enumerate(table.alternative_names)]
        others = {source: OtherNames.of(names, _rows_of(model.encoder, source)) for source in texts}
    _warn_of_unknown_words(
        change, [*texts.values(), *(several.by_label(n_labels) for several in others.values())]
    )
    data = replace(
        before,
        Y=Y,
        label_names=change.names,
        other_names=others,
        label_vectors=vectors_in(model.encoder, table),
        name_forms=_name_forms(model, change) if model.reads_word_order else None,
        **texts,
    )
    known = [rows for source in model.sources if (rows := source.scorer.training_labels()) is not None]
    if known:  # the index of the rows, which are the same
        data.shared("training-rows", lambda X: known[0][0])
    return replace(
        _updated(model, data, change.now, n_jobs),
        n_labels=n_labels,
        label_names=change.names,
        labels=table,
        removed=change.removed,
        merged=change.merged,
        old_names=list(change.old_names) or None,
        renamed=np.array(list(change.old_names.values()), np.int32) if change.old_names else None,
        missing=_still_missing(model.missing, change, Y),
    )


def with_more_rows(model: FittedModel, X: Any, Y: Any, n_jobs: int) -> FittedModel:
    """The model with more training rows, for `MetaRanker.partial_fit`."""
    if model.given_sources or model.given_features:
        raise ValueError("partial_fit is not possible for a model with candidates or pair_features: refit")
    if isinstance(X, Dataset) == (Y is not None):
        raise ValueError("Y is required, and must be left out if X is a Dataset with labels")
    check_same_order(X=X, Y=Y)
    before, rows = _training_set(model), model.encoder.encode(X)
    given = X.X if isinstance(X, Dataset) else X
    blocks = None
    if isinstance(model.encoder, BlocksEncoder) and holds_blocks(given):
        blocks = model.encoder.read(given)
    more = row_names(X, None if isinstance(X, Dataset) else texts_of(X), blocks)
    labels = rows_labels(model, X if isinstance(X, Dataset) else Y, rows.shape[0])
    if (at := np.flatnonzero(np.isin(labels.indices, model.removed))).size:
        raise ValueError(f"Y must not hold removed labels, got {labels.indices[at[0]]}")
    n_before = before.Y.shape[0]
    data = replace(
        before,
        X=sp.vstack([before.X, rows], "csr") if sp.issparse(rows) else np.concatenate([before.X, rows]),
        Y=sp.vstack([before.Y, (labels > 0).astype(np.float32)], "csr"),
        fold=np.zeros(n_before + rows.shape[0], np.int32),
    )
    names = model.row_names
    if names is not None or more is not None:
        names = PackedStrings.of([*(names or [""] * n_before), *(more or [""] * rows.shape[0])])
    same = np.arange(model.n_labels, dtype=np.int32)
    return replace(_updated(model, data, same, n_jobs), n_rows=data.Y.shape[0], row_names=names)


def rows_labels(model: FittedModel, Y: Any, n_rows: int) -> sp.csr_matrix:
    """The relevances of new rows in the model's label ids; ValueError for an unknown label."""
    relevance = aligned_relevance(model, Y, n_rows)
    if relevance.unknown:
        raise ValueError(
            f"Y must have only labels of this model, got {relevance.unknown[0]!r:.80}: add it first"
        )
    return relevance.Y


def judged_pairs(model: FittedModel, Y: Any, negatives: Any, n_rows: int) -> sp.csr_matrix:
    """CSR (n, L): the pairs of new rows that are known to be relevant or rejected."""
    judged = sp.csr_matrix((n_rows, model.n_labels), dtype=np.float32)
    if Y is not None:
        given = aligned_relevance(model, Y, n_rows)
        if given.unknown:
            unknown = f"{len(given.unknown)} labels that the model does not know: {first_few(given.unknown)}"
            warnings.warn(f"Y: left out {unknown}", stacklevel=outside())
        judged = judged + given.Y[:, : model.n_labels]
    if negatives is not None:
        rejected = check_rejected(negatives, sp.csr_matrix(judged), model.label_table)
        judged = judged + rejected.to_csr(np.ones(rejected.n_pairs, np.float32))
    return judged


def training_rows_of(model: FittedModel) -> tuple[Features, sp.csr_matrix]:
    """The training rows of a model, and their labels, CSR (n, L) of ones, from sources that keep them.

    Of a model of blocks only the blocks that some source keeps are known; the columns of the others are 0.

    Raises
    ------
    ValueError
        If no source keeps them, or the model has several objectives.
    """
    if model.objective_names is not None:
        raise ValueError(_OBJECTIVES)
    if not model.n_rows:
        raise ValueError("a model without training rows does not change its labels: fit the labels of now")
    scorers = [source.scorer for source in model.sources]
    for scorer in scorers:
        if (rows := scorer.training_labels()) is not None:
            return rows[0].X, rows[1]
    kept = [of for scorer in scorers if (of := scorer.block_rows()) is not None]
    if not kept:
        raise ValueError(
            "this model keeps no training rows to change: refit, or add 'neighbors' or 'votes' to features "
            "or shortlister"
        )
    of_block, Y = {columns.name: rows.X for columns, rows, _ in kept}, kept[0][2]
    parts = [
        of_block.get(block.name, sp.csr_matrix((Y.shape[0], block.stop - block.start), dtype=np.float32))
        for block in model.encoder.blocks
    ]
    X = side_by_side(parts)
    return dense(X) if model.encoder.layout == "dense" else X, Y


def _training_set(model: FittedModel) -> TrainingSet:
    """What the sources of a model keep of the rows and labels that they learned from."""
    X, Y = training_rows_of(model)
    texts: dict[str, sp.csr_matrix] = {}
    by_block: dict[str, dict[str, OtherNames]] = {}
    for scorer in (source.scorer for source in model.sources):
        for name, text in scorer.label_texts().items():
            # The same text of several sources, or those of several blocks, which share no column.
            texts[name] = text if name not in texts else texts[name].maximum(text)
        for name, names in scorer.other_names().items():
            by_block.setdefault(name, {})[scorer.block] = names
    return TrainingSet(
        X,
        Y,
        np.zeros(Y.shape[0], np.int32),
        seed=model.random_state,
        label_names=model.label_names,
        words=model.encoder.feature_words,
        feature_scale=model.encoder.transform.scale,
        other_names={name: OtherNames.joined(list(of.values())) for name, of in by_block.items()},
        blocks=with_rest(model.encoder.blocks),
        label_vectors=vectors_in(model.encoder, model.labels),
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


def _rows_of(encoder: InputEncoder, source: str) -> Any:
    """What makes rows of names, by their words or by their spelling."""
    return encoder.rows_of_names if source == "label_text" else encoder.rows_of_spellings


def _changed_text(text: sp.csr_matrix, change: LabelChange, rows_of: Any) -> sp.csr_matrix:
    """The text matrix of the labels after a change. Rows of removed labels are empty."""
    ids, n_before = list(change.texts), text.shape[0]
    parts = [text, sp.csr_matrix((1, text.shape[1]), dtype=np.float32)]
    if ids:
        parts.append(rows_of(*zip(*change.texts.values())))
    row = np.full(change.n_labels, n_before)
    row[:n_before][change.now == np.arange(n_before)] = np.flatnonzero(change.now == np.arange(n_before))
    row[ids] = n_before + 1 + np.arange(len(ids))
    return sp.vstack(parts, "csr")[row]


def _warn_of_unknown_words(change: LabelChange, texts: Sequence[sp.csr_matrix]) -> None:
    """Warn about new names without a word of the model's vocabulary, since no row can match them but by
    vectors."""
    vectors = None if change.table is None else change.table.vectors
    silent = [
        name
        for label, (name, _) in change.texts.items()
        if not any(text[label].nnz for text in texts) and (vectors is None or not vectors[label].any())
    ]
    if texts and silent:
        warnings.warn(
            f"the model knows no word of {first_few(silent)}: such a label is found only by rows added with "
            "`partial_fit`, or after a new fit",
            stacklevel=4,
        )


def _name_forms(model: FittedModel, change: LabelChange) -> NameForms | None:
    """The ways in which the labels are written after a change; those that are removed, in none."""
    table, vectorizer = change.table, model.encoder.word_reader
    if vectorizer is None:
        return None
    names = list((None if table is None or not table.has_names else table.names) or change.names or [])
    others = None if table is None or table.alternative_names is None else list(table.alternative_names)
    for label in change.removed:
        names[label] = ""
        if others is not None:
            others[label] = []
    return name_forms(names, others, vectorizer.language_)


def _still_missing(missing: MissingPairs, change: LabelChange, Y: sp.csr_matrix) -> MissingPairs:
    """The pairs whose label is as it was and still not a label of the row."""
    kept = change.now[missing.labels] == missing.labels
    kept[kept] = np.asarray(Y[missing.rows[kept], missing.labels[kept]]).ravel() == 0
    return MissingPairs(missing.rows[kept], missing.labels[kept], missing.probabilities[kept])
