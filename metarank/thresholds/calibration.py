"""From ranker scores to log-odds: the mean of the calibrators with the least log loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metarank import _core
from metarank.metrics.logistic import Platt, fit_label_logistic, mean_log_odds
from metarank.persist.fields import Array, Dim, Each, List, Number, Object, Text
from metarank.persist.spec import Saved
from metarank.thresholds.cross_label import CrossLabel
from metarank.thresholds.lists import positions, saved_labels
from metarank.types.candidates import Candidates

# Terms between labels cost L² numbers and need rows to pay for them.
_CROSS_LABELS = 50
_CROSS_PAIRS = 200_000
_MEMBERS = 3
# Held-out log-odds are shrunk if their slope is below 1 by more than this.
_STANDARD_ERRORS = 1.0


class CalibrationForm(NamedTuple):
    """What a calibrator may use.

    The first `columns` of `list_context` (2: only 1 and s), terms of each label for the first
    `label_columns` of them, and perhaps terms between labels.
    """

    columns: int
    label_columns: int
    label_ridge: float
    cross_ridge: float | None = None


FORMS = {
    "pooled": CalibrationForm(2, 0, 0.0),
    "label slopes, ridge 1": CalibrationForm(2, 2, 1.0),
    "label offsets, ridge 10": CalibrationForm(2, 1, 10.0),
    "label offsets, ridge 1": CalibrationForm(2, 1, 1.0),
    "label slopes, ridge 3": CalibrationForm(2, 2, 3.0),
    "context, label offsets": CalibrationForm(9, 1, 3.0),
    "context, label slopes": CalibrationForm(9, 2, 3.0),
    "label slopes, cross-label 30": CalibrationForm(2, 2, 3.0, 30.0),
    "context, cross-label 100": CalibrationForm(9, 2, 3.0, 100.0),
    "context, cross-label 30": CalibrationForm(9, 2, 3.0, 30.0),
}


# Limit of saved numbers: products of three, and sums of them, stay far within double precision.
_MOST = 1e60
# Columns of `_core.list_context`.
_CONTEXT = 9


def _within(*dims: Dim, least: float = -_MOST) -> Array:
    """A field of such numbers."""
    return Array("", np.float64, dims, least=least, most=_MOST)


def _name_of(form: CalibrationForm) -> str:
    return next(name for name, known in FORMS.items() if known == form)


_FORM = Text("", FORMS, of=lambda model: _name_of(model.form), into=FORMS.__getitem__)


@dataclass(frozen=True, eq=False)
class LabelLogistic(Saved):
    """A fitted form: coefficients of the columns, by label for the first of them, and between labels."""

    form: Annotated[CalibrationForm, _FORM]
    shared: Annotated[np.ndarray, _within(lambda known: known.form.columns)]
    by_label: Annotated[np.ndarray, _within("labels+1", lambda known: known.form.label_columns)]
    cross: Annotated[CrossLabel | None, Object("", CrossLabel, optional=True)] = None

    def logits(self, X: np.ndarray, index: np.ndarray) -> np.ndarray:
        """float64 (m,) from the standardised columns, without the terms between labels."""
        return _core.label_logistic_scores(_columns(X, self.form), index, self.shared, self.by_label)


def _by_form(members: list[LabelLogistic]) -> dict[str, LabelLogistic]:
    if not members:
        raise ValueError("members must hold at least one form")
    return {_name_of(member.form): member for member in members}


_MEMBERS_BY_FORM = List(
    "", Object("", LabelLogistic, ("labels",)), of=lambda of: list(of.members_.values()), into=_by_form
)


class Calibrator(Saved):
    """Mean log-odds of the three calibrators with the least cross-fitted log loss.

    One Platt scaling brings the scores to the scale of log-odds. Then `fit_label_logistic` fits each of
    `FORMS`, starting at logit = score, and each is measured on held-out rows. Where their mean is
    overconfident there (its slope by Platt scaling is below 1 by more than a standard error), it is shrunk by
    that slope. These folds must differ from those that made the out-of-fold scores: with the same folds the
    flexible forms look worse than they are.

    Attributes
    ----------
    losses_ : dict of str to float
        Cross-fitted log loss of each form, per row.
    members_ : dict of str to LabelLogistic
        The chosen forms, fitted on all rows.
    trust_ : Platt or None
        The scaling that shrinks their mean; None where it is not shrunk.
    cross_fitted_ : float64 array (m,)
        Log-odds of the training pairs from fits without their row's fold.
    """

    platt_: Annotated[Platt, Object("", Platt)]
    trust_: Annotated[Platt | None, Object("", Platt, optional=True)]
    mean_: Annotated[NDArray[np.float64], _within(_CONTEXT)]
    scale_: Annotated[NDArray[np.float64], _within(_CONTEXT, least=1 / _MOST)]
    index_: Annotated[np.ndarray, saved_labels("")]
    losses_: Annotated[dict[str, float], Each("", Number(""), FORMS)]
    members_: Annotated[dict[str, LabelLogistic], _MEMBERS_BY_FORM]
    cross_fitted_: np.ndarray

    def fit(
        self, candidates: Candidates, scores: np.ndarray, relevant: np.ndarray, fold: np.ndarray
    ) -> Calibrator:
        """Learn from out-of-fold scores (m,), relevance (m,) and a fold for each row (n,)."""
        target = relevant.astype(np.float64)
        self.platt_ = Platt().fit(scores, target)
        s = self.platt_.logits(scores)
        self.index_ = np.unique(candidates.labels)
        X = _core.list_context(s, candidates.indptr)
        mean, scale = X.mean(axis=0), X.std(axis=0)
        scale[scale < 1e-9] = 1.0
        mean[0], scale[0] = 0.0, 1.0
        self.mean_, self.scale_ = mean, scale
        X = (X - mean) / scale
        index = positions(self.index_, candidates.labels)
        data = _CalibrationData(candidates, X, s, index, target, fold, len(self.index_))
        start = np.zeros(X.shape[1])
        start[:2] = mean[1], scale[1]
        c = candidates
        allows_cross_labels = c.is_full and 1 < c.n_labels <= _CROSS_LABELS and c.n_pairs <= _CROSS_PAIRS
        fits: dict[CalibrationForm, _CrossFit] = {}
        held_out: dict[str, np.ndarray] = {}
        models: dict[str, LabelLogistic] = {}
        for name, form in FORMS.items():
            plain = form._replace(cross_ridge=None)
            if plain not in fits:
                fits[plain] = data.cross_fit(plain, start)
            if form.cross_ridge is None:
                models[name], held_out[name], _ = fits[plain]
            elif allows_cross_labels:
                models[name], held_out[name] = data.cross_fit_between_labels(form, fits[plain])
        n = max(1, candidates.n_rows)
        self.losses_ = {
            name: float((np.logaddexp(0, z) - target * z).sum() / n) for name, z in held_out.items()
        }
        chosen = sorted(self.losses_, key=self.losses_.__getitem__)[:_MEMBERS]
        self.members_ = {name: models[name] for name in chosen}
        self.cross_fitted_ = np.mean([held_out[name] for name in chosen], axis=0)
        trust = Platt().fit(self.cross_fitted_, target)
        doubted = trust.slope + _STANDARD_ERRORS * trust.slope_error(self.cross_fitted_) < 1
        if trust.slope < 0:
            trust.slope, trust.offset = 0.0, mean_log_odds(target)
        self.trust_ = trust if doubted else None
        self.cross_fitted_ = self._trusted(self.cross_fitted_)
        return self

    def _trusted(self, logits: np.ndarray) -> np.ndarray:
        """Log-odds, shrunk as held-out rows demand."""
        return logits if self.trust_ is None else self.trust_.logits(logits)

    def logits(self, candidates: Candidates, scores: np.ndarray) -> np.ndarray:
        """Calibrated log-odds, float64 (m,); those of a row depend on its scores only."""
        s = self.platt_.logits(scores)
        X = (_core.list_context(s, candidates.indptr) - self.mean_) / self.scale_
        index = positions(self.index_, candidates.labels)
        total = np.zeros(len(s))
        for model in self.members_.values():
            total += model.logits(X, index)
            if model.cross is not None:
                total += model.cross.logits(candidates, s)
        return self._trusted(total / len(self.members_))


_CrossFit: TypeAlias = tuple[LabelLogistic, np.ndarray, dict[int, LabelLogistic]]


@dataclass(frozen=True, eq=False)
class _CalibrationData:
    candidates: Candidates
    X: np.ndarray
    s: np.ndarray
    index: np.ndarray
    target: np.ndarray
    fold: np.ndarray
    n_known: int

    @cached_property
    def by_label(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The pairs' numbers, label by label; in that order the positions of labels, targets and folds."""
        order = np.argsort(self.index, kind="stable")
        fold_of_pair = self.fold[self.candidates.row_of_pair]
        return order, self.index[order], self.target[order], fold_of_pair[order]

    def cross_fit(self, form: CalibrationForm, start: np.ndarray) -> _CrossFit:
        """The form fitted on all rows, its held-out log-odds, and the form fitted without each fold."""
        order, index, target, fold_there = self.by_label
        fold = self.fold[self.candidates.row_of_pair]
        X = _columns(self.X, form)[order]

        def fit(weight: np.ndarray, shared: np.ndarray, by_label: np.ndarray) -> LabelLogistic:
            fitted = fit_label_logistic(
                X, index, target, weight, shared, by_label, label_ridge=form.label_ridge
            )
            return LabelLogistic(form, *fitted)

        # One row more than there are labels: the zeros of an unseen label.
        model = fit(np.ones(len(X)), start[: form.columns], np.zeros((self.n_known + 1, form.label_columns)))
        held_out, without = model.logits(self.X, self.index), {}
        folds = np.unique(self.fold)
        for f in folds if len(folds) > 1 else []:
            # The full fit is near. The loss is convex, so the start does not matter.
            without[int(f)] = fit((fold_there != f).astype(np.float64), model.shared, model.by_label)
            held_out[fold == f] = without[int(f)].logits(self.X, self.index)[fold == f]
        return model, held_out, without

    def cross_fit_between_labels(
        self, form: CalibrationForm, base: _CrossFit
    ) -> tuple[LabelLogistic, np.ndarray]:
        n, n_labels = self.candidates.n_rows, self.candidates.n_labels
        S, Y = self.s.reshape(n, n_labels), self.target.reshape(n, n_labels)
        assert form.cross_ridge is not None

        def offsets(model: LabelLogistic) -> np.ndarray:
            return model.logits(self.X, self.index).reshape(n, n_labels)

        model, _, without = base
        full = offsets(model)
        cross = CrossLabel(form.cross_ridge).fit(S, Y, full)
        held_out = full + cross.terms(S)
        for f, model_without in without.items():
            out = self.fold == f
            offset = offsets(model_without)
            part = CrossLabel(form.cross_ridge).fit(S[~out], Y[~out], offset[~out], start=cross)
            held_out[out] = offset[out] + part.terms(S[out])
        return LabelLogistic(form, model.shared, model.by_label, cross), held_out.ravel()


def _columns(X: np.ndarray, form: CalibrationForm) -> np.ndarray:
    return np.ascontiguousarray(X[:, : form.columns])
