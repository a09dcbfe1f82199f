"""`Dataset`: features, labels and their names, as one object."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.data.blocks import Blocks, holds_blocks
from metarank.data.separators import AUTO, check_separator, split_labels
from metarank.types.checks import check_features, check_labels, check_same_order, check_writable
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.label_table import relabeled

MISSING = "numbers may be missing in blocks, which data.Blocks.of makes of a data frame"


@dataclass(frozen=True, repr=False, init=False)
class Dataset:
    """Instances with their labels; what `metarank.data` reads and writes.

    Parameters
    ----------
    X : features (n, d) or None
        Kept as float32, dense or CSR by density. None if there
        are only texts. A dict of named blocks, a data frame with columns of texts, vectors or categories, or
        `Blocks`, is kept as `Blocks`.
    Y : labels of the n instances, or None
        A matrix (n, L), lists of labels, or one class per row; kept as float32 CSR (n, L). None: no labels,
        L = 0. Integers in lists and classes are names, in order of value: [[7], [100]] has the two
        labels "7" and "100". With `n_labels` or `label_names` they are label ids in [0, L).
    label_names : sequence of str (L) or None
        Names of all labels, in the order of their ids. Labels of a matrix may share names.
    feature_names : sequence of str (d) or None
    texts : sequence of str (n) or None
        Raw text of each instance, for training; X is then None.
    label_texts : sequence of str (L) or None
        A longer description of each label.
    name : str
    titles : sequence of str (n) or None
        A name of each instance for display, in explanations and reports.
    n_labels : int or None
        L, if the integers in lists of Y are label ids.
    label_separator : str or None
        Separator of the labels in one cell, if Y is a column of texts: any text, "whitespace", "list",
        "<>", None for one label a cell, or "auto", by the rule of `metarank.data.separators`. The attribute
        holds the separator that was used; "auto" if there are no texts.
    text_columns : sequence of str or None
        The columns of a file that were joined into texts, if given: a model reads later files the same
        way.
    label_names_are_ids : bool
        Whether the label names are only integer ids, which a model does not search in texts. Set if Y is
        lists of integers.
    labels : LabelDescriptions or None
        A table of labels, see `metarank.data.read_labels`. All its labels are labels of the data set, in its
        order; Y names them by id or name, and a matrix without `label_names` has a column for each. Labels
        that are not in the table follow, with a warning. `label_names`
        and `label_texts` are then those of the table.

    Raises
    ------
    ValueError
        If X, Y, names and texts do not agree in length, X or Y is invalid, or both X and texts are given.

    Examples
    --------
    >>> ds = Dataset([[1, 0], [0, 1]], [["a"], ["a", "b"]], name="toy")
    >>> ds
    Dataset('toy': 2 rows, 2 features (dense), 2 labels, 1.50 labels per row)
    >>> ds.take([1]).Y.toarray()
    array([[1., 1.]], dtype=float32)
    """

    X: Any
    Y: Any
    label_names: list[str] | None
    feature_names: list[str] | None
    texts: list[str] | None
    name: str
    label_texts: list[str] | None
    titles: list[str] | None
    label_separator: str | None
    label_names_are_ids: bool
    text_columns: list[str] | None
    labels: LabelDescriptions | None

    def __init__(
        self,
        X: Any = None,
        Y: Any = None,
        label_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        name: str = "",
        label_texts: Sequence[str] | None = None,
        *,
        titles: Sequence[str] | None = None,
        n_labels: int | None = None,
        label_separator: str | None = AUTO,
        label_names_are_ids: bool = False,
        labels: LabelDescriptions | None = None,
        text_columns: Sequence[str] | None = None,
    ) -> None:
        if X is not None and texts is not None:
            raise ValueError("X and texts must not both be given: pass texts for display as titles")
        for row, text in enumerate(texts if texts is not None else ()):
            if not isinstance(text, str):
                raise TypeError(f"texts must hold a text per row, got {text!r:.80} at row {row}")
        check_same_order(X=X, Y=Y)
        if X is not None:
            X = Blocks.of(X) if holds_blocks(X) else check_features(X, min_rows=0, nan_hint=MISSING)
        n_rows = X.shape[0] if X is not None else None if texts is None else len(texts)
        if n_rows is None and Y is None:
            raise ValueError("a Dataset needs at least one of X, Y and texts")
        Y = sp.csr_matrix((n_rows, n_labels or 0), dtype=np.float32) if Y is None else Y
        Y, separator = split_labels(Y, check_separator(label_separator))
        Y, names, kind = check_labels(
            Y, n_rows=n_rows, n_labels=n_labels, label_names=label_names, allow_no_labels=True
        )
        are_ids = names is not None and (label_names_are_ids or kind == "ids")
        if labels is not None:
            _check_table(labels, label_texts)
            Y, labels = labels.covering(Y, names)
            names, label_texts = labels.shown_names, labels.descriptions
            are_ids = are_ids and not labels.has_names
        self.__dict__.update(
            X=X,
            Y=Y,
            name=name,
            labels=labels,
            label_separator=separator,
            label_names_are_ids=are_ids,
            text_columns=None if text_columns is None else list(text_columns),
        )
        self.__dict__.update(
            label_names=_strings("label_names", names, self.n_labels),
            label_texts=_strings("label_texts", label_texts, self.n_labels),
            feature_names=_strings("feature_names", feature_names, self.n_features),
            texts=_strings("texts", texts, self.n_rows),
            titles=_strings("titles", titles, self.n_rows),
        )

    @property
    def n_rows(self) -> int:
        return int(self.Y.shape[0])

    @property
    def n_features(self) -> int:
        """The columns of X; 0 where it is text or blocks, whose columns a model makes."""
        return 0 if self.X is None or isinstance(self.X, Blocks) else int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        return int(self.Y.shape[1])

    @property
    def is_graded(self) -> bool:
        """Whether Y has a relevance other than 0 and 1."""
        return bool(np.any(self.Y.data != 1))

    def take(self, rows: Any) -> Dataset:
        """Select rows (ids, slice or mask), in the given order; X stays dense or sparse."""
        rows = np.arange(self.n_rows)[rows]
        out = copy(self)
        X = self.X.take(rows) if isinstance(self.X, Blocks) else self.X
        out.__dict__.update(X=X if X is None or isinstance(X, Blocks) else X[rows], Y=self.Y[rows])
        for name in ("texts", "titles"):
            values = getattr(self, name)
            out.__dict__[name] = None if values is None else [values[i] for i in rows]
        return out

    def summary(self) -> dict[str, Any]:
        """Sizes and label statistics as plain ints, floats, strings and bools, ready for JSON."""
        label_counts = np.bincount(self.Y.indices, minlength=self.n_labels)
        used = label_counts[label_counts > 0]
        blocks = self.X if isinstance(self.X, Blocks) else None
        X = None if blocks is not None else self.X
        n_nonzero = 0 if X is None else X.nnz if sp.issparse(X) else np.count_nonzero(X)
        known = ("label_names", "feature_names", "texts", "titles", "label_texts")
        return {
            "name": self.name,
            "n_rows": self.n_rows,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "layout": None if X is None else "sparse" if sp.issparse(X) else "dense",
            "blocks": None if blocks is None else blocks.kinds,
            "features_per_row": float(n_nonzero / max(self.n_rows, 1)),
            "labels_per_row": float(self.Y.nnz / max(self.n_rows, 1)),
            "rows_without_label": int(np.count_nonzero(np.diff(self.Y.indptr) == 0)),
            "labels_without_row": int(self.n_labels - len(used)),
            "label_frequency_median": float(np.median(used)) if len(used) else 0.0,
            "label_frequency_max": int(label_counts.max(initial=0)),
            "graded": self.is_graded,
        } | {name: getattr(self, name) is not None for name in known}

    def __repr__(self) -> str:
        s = self.summary()
        features = f"{self.n_features:,} features ({s['layout']})" if s["layout"] else "no features"
        if s["blocks"] is not None:
            features = f"blocks {', '.join(f'{name} ({kind})' for name, kind in s['blocks'].items())}"
        parts = [f"{self.n_rows:,} rows", features, f"{self.n_labels:,} labels",
                 f"{s['labels_per_row']:.2f} labels per row"]  # fmt: skip
        parts += ["graded"] if self.is_graded else []
        parts += ["with text"] if self.texts is not None else []
        return f"Dataset({self.name!r}: {', '.join(parts)})"


def _check_table(labels: Any, label_texts: Sequence[str] | None) -> None:
    """Refuse what is not a table of labels, and other texts of labels beside it."""
    if not isinstance(labels, LabelDescriptions):
        raise TypeError(f"labels must be a LabelDescriptions, see data.read_labels, got {labels!r:.80}")
    if label_texts is not None and list(label_texts) != labels.descriptions:
        raise ValueError("label_texts must be left out with labels, which has descriptions")


def _strings(field: str, values: Sequence[Any] | None, expected: int) -> list[str] | None:
    """A field of the data set as a list of this many strings."""
    if values is None:
        return None
    if len(values) != expected:
        raise ValueError(f"{field} must have {expected} entries, got {len(values)}")
    strings = [str(value) for value in values]
    if field in ("label_texts", "feature_names"):
        for value in strings:
            check_writable(value, field)
    return strings


def from_texts(
    texts: Sequence[str], labels: Any = None, *, label_separator: str | None = AUTO, name: str = ""
) -> Dataset:
    """A `Dataset` of texts in memory; the model vectorises them.

    Parameters
    ----------
    texts : sequence of str (n)
    labels, label_separator : as `Y` and `label_separator` of `Dataset`
    name : str

    Raises
    ------
    TypeError
        If `texts` is one string, or an entry is not a string; the message has its position.

    Examples
    --------
    >>> from_texts(["red wine", "green tea"], [["drink", "grape"], ["drink"]]).label_names
    ['drink', 'grape']
    """
    if isinstance(texts, str):
        raise TypeError("texts must be a sequence of strings, got one string; wrap it in a list")
    return Dataset(texts=list(texts), Y=labels, label_separator=label_separator, name=name)


def under_names(Y: sp.csr_matrix, own: Sequence[str] | None, names: Sequence[str]) -> sp.csr_matrix:
    """Y (n, L) of labels by their own names with a column for each of some names, which hold all of those.

    Raises
    ------
    KeyError
        If a name is missing; its argument is the name.
    """
    column = {name: j for j, name in enumerate(names)}
    return relabeled(Y, np.array([column[name] for name in own or ()], np.int64), len(names))
