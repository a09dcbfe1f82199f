"""Slices: metrics of some rows, by a value of each, or of some labels, by their number of training rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank.metrics.inputs import Inputs
from metarank.metrics.names import Metric

LABEL_FREQUENCY = "label frequency"
NONE, OTHERS = "(none)", "(others)"
_DATE = re.compile(r"(\d{4})-(\d\d)(?:-\d\d)?(?:[T ].*)?")


class FrequencyBin(NamedTuple):
    """Labels with `low` to `high` training rows, and how many relevant test pairs they have."""

    low: int
    high: int
    n_labels: int
    n_pairs: int

    @property
    def name(self) -> str:
        """A text such as "3-5", or "none"."""
        if self.high == 0:
            return "none"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def frequency_bins(Y: sp.csr_matrix, label_counts: np.ndarray, n_bins: int = 6) -> list[FrequencyBin]:
    """Bins of training frequency that hold about equally many relevant pairs of Y, rare labels first.

    A frequency is never split over bins; labels without training rows have a separate bin.

    Examples
    --------
    >>> Y = sp.csr_matrix([[1, 1, 0, 1], [0, 1, 0, 1]])
    >>> [(b.name, b.n_labels, b.n_pairs) for b in frequency_bins(Y, np.array([0, 2, 3, 9]), 3)]
    [('none', 1, 1), ('1-2', 1, 2), ('3-9', 2, 2)]
    """
    of_pair = np.sort(label_counts[Y.indices[Y.data > 0]].astype(np.int64))
    if len(of_pair) == 0:
        return []
    positive = of_pair[of_pair > 0]
    edges = {0} if len(positive) < len(of_pair) else set()
    for part in np.array_split(positive, min(n_bins - len(edges), len(positive)) or 1):
        if len(part):
            edges.add(int(part[-1]))
    bins, low = [], int(of_pair[0])
    for high in sorted(edges):
        inside = (label_counts >= low) & (label_counts <= high)
        pairs = int(np.count_nonzero((of_pair >= low) & (of_pair <= high)))
        if pairs:
            bins.append(FrequencyBin(low, high, int(inside.sum()), pairs))
        low = high + 1
    return bins


def rows_by_value(values: Any, n_rows: int) -> dict[str, np.ndarray]:
    """The rows of each value, by its text: numbers within it in their order, rows without a value last.

    Raises
    ------
    ValueError
        If there is not one value per row.

    Examples
    --------
    >>> rows_by_value(["week 10", "week 9", None, "week 10"], 4)
    {'week 9': array([1]), 'week 10': array([0, 3]), '(none)': array([2])}
    """
    texts = as_texts(values)
    if len(texts) != n_rows:
        raise ValueError(f"slices must hold a value per row, {n_rows}, got {len(texts)}")
    found: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        found.setdefault(text, []).append(row)
    return {text: np.array(found[text]) for text in sorted(found, key=_natural)}


def as_texts(values: Any) -> list[str]:
    """The names of slices for the values of a column: whole numbers without a point, `NONE` for nothing."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__") or np.ndim(values) > 1:
        raise ValueError(f"slices must be {LABEL_FREQUENCY!r} or a sequence of values, got {values!r:.80}")
    return [_text(value) for value in (values.tolist() if isinstance(values, np.ndarray) else list(values))]


def few_values(values: Any, most: int = 12) -> list[str]:
    """The values of a column, reduced in number: dates by year or month, numbers by ranges of about equally
    many rows, others to the most frequent and `OTHERS`. Few values do not change.

    Examples
    --------
    >>> few_values(["2023-12-31", "2024-01-01", "2024-02-03"], 2)
    ['2023', '2024', '2024']
    >>> few_values([1, 2.5, 3, 40, None], 2)
    ['1 to 2.5', '1 to 2.5', '3 to 40', '3 to 40', '(none)']
    >>> few_values(["a", "b", "c", "a"], 2)
    ['a', '(others)', '(others)', 'a']
    """
    texts = as_texts(values)
    if _few(texts, most):
        return texts
    present = [text for text in texts if text != NONE]
    if all(_DATE.fullmatch(text) for text in present):
        end = 4 if len({text[:4] for text in present}) > 1 else 7
        texts = [text if text == NONE else text[:end] for text in texts]
        if _few(texts, most):
            return texts
        present = [text for text in texts if text != NONE]
    numbers = [_number(text) for text in present]
    if None not in numbers:
        return _ranges(texts, most)
    kept = {text for text, _ in Counter(present).most_common(most - 1)}
    return [text if text in kept or text == NONE else OTHERS for text in texts]


def _few(texts: Sequence[str], most: int) -> bool:
    return len(set(texts) - {NONE}) <= most


def _ranges(texts: Sequence[str], most: int) -> list[str]:
    by_value = {float(text): text for text in texts if text != NONE}
    ordered = np.sort([float(text) for text in texts if text != NONE])
    ends = np.unique([part[-1] for part in np.array_split(ordered, most) if len(part)])
    distinct = np.array(sorted(by_value))
    names: dict[float, str] = {}
    for part in np.split(distinct, np.searchsorted(distinct, ends[:-1], side="right")):
        low, high = by_value[part[0]], by_value[part[-1]]
        names |= dict.fromkeys(part.tolist(), low if low == high else f"{low} to {high}")
    return [text if text == NONE else names[float(text)] for text in texts]


def _text(value: Any) -> str:
    if value is None or value != value:  # None, NaN, NaT
        return NONE
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)
    return str(value).strip() or NONE


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if np.isfinite(value) else None


def _natural(text: str) -> tuple[int, list[tuple[float, str]]]:
    """A key that orders numbers within texts by value, and `OTHERS` and `NONE` last."""
    parts = re.split(r"(^-?\d+(?:\.\d+)?|\d+)", text)
    key = [(-np.inf if i % 2 == 0 else float(part), part) for i, part in enumerate(parts)]
    return {OTHERS: 1, NONE: 2}.get(text, 0), key


def goes_by_label(metric: Metric) -> bool:
    """Whether a metric works by label frequency: not those of predicted relevances, of lists of labels, of a
    hierarchy, and of all listed labels."""
    return metric.needs != "relevance" and not metric.definition.labelwise and metric.name not in _WHOLE


_WHOLE = ("hP", "hR", "hF", "C")


def slices_of(
    slices: Any, label_counts: Any, inputs: Inputs, metrics: Sequence[Metric]
) -> dict[str, Callable[[Inputs, bool], Inputs]]:
    """The slices by name, as `evaluate` takes them; each gives its part of inputs, of label sets or of lists.

    Of rows it has some. Of labels: lists stay as they are, and only the slice's labels are relevant; of label
    sets there are these labels alone.
    """
    if not (isinstance(slices, str) and slices == LABEL_FREQUENCY):
        if label_counts is not None:
            raise ValueError(f"label_counts must be left out without slices={LABEL_FREQUENCY!r}")
        by_value = rows_by_value(slices, inputs.n_rows)
        return {name: partial(_of_rows, rows) for name, rows in by_value.items()}
    for metric in metrics:
        if not goes_by_label(metric):
            raise ValueError(f"slices={LABEL_FREQUENCY!r} does not go with {str(metric)!r}")
    counts: Any = None if label_counts is None else inputs.of_all_labels(label_counts, unseen=0)
    fits = counts is not None and counts.shape == inputs.shape[1:] and counts.dtype.kind in "iu"
    if not fits or (counts < 0).any():
        got = "none" if counts is None else f"shape {counts.shape}, dtype {counts.dtype}"
        raise ValueError(
            f"label_counts must hold the training rows of each of the {inputs.n_labels} labels, integers "
            f">= 0, with slices={LABEL_FREQUENCY!r}, got {got}"
        )
    return {
        b.name: partial(_of_labels, np.flatnonzero((counts >= b.low) & (counts <= b.high)))
        for b in frequency_bins(inputs.Y, counts)
    }


def _of_rows(rows: np.ndarray, inputs: Inputs, of_sets: bool) -> Inputs:
    return inputs.rows(rows)


def _of_labels(labels: np.ndarray, inputs: Inputs, of_sets: bool) -> Inputs:
    return inputs.columns(labels) if of_sets else inputs.relevant_among(labels)
