"""`TailClassifiers`: the probability of a label from the distance to the mean of its training points."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank import _core
from metarank._util.parameters import check_flag, check_integer, check_real, with_parameters
from metarank._util.progress import note
from metarank._util.threads import resolve_n_jobs
from metarank.metrics import evaluate
from metarank.persist.fields import Csr, Number, Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import held_apart
from metarank.scorers.label_weights import relevance_weights
from metarank.scorers.neighbors.label_means import LabelMeans, sq_norms
from metarank.scorers.neighbors.training_rows import as_canonical, canonical_parts, check_width
from metarank.types.arrays import dense
from metarank.types.candidates import Candidates, canonical_csr
from metarank.types.view import Features, TrainingView

COLUMN = "tail classifier: log-probability"
PROPOSAL = "tail"
# All positive numbers but infinity.
_GAMMAS = np.nextafter(0, 1), np.finfo(np.float64).max
_LONGEST = 1.0  # |y|^2 of the longest of rows of unit length
# What "auto" tries, and what it takes where rows are too few to hold any out.
NAME_WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)
_UNTRIED = 1.0
_MOST_NAME_WEIGHT = 1e6
_WITH_NAMES = "unit-rows and names"


@with_parameters
class TailClassifiers(LabelScorer):
    """A generative classifier for each label, good for labels with few training points.

    Jain et al. (2016), eq. 5 and 7: with x of unit length and mu_l the mean of the label's training points,
    of unit length each::

        P_tail(l | x) = 1 / (1 + exp(gamma / 2 |x - mu_l|^2))

    One column, ``tail classifier: log-probability``: log P_tail, at most -log 2. `rerank_with_tail` of
    `metarank.metrics.rerank` combines it with predicted relevances. Grades are ignored.

    If labels have names, a mean may be drawn towards the name: with t_l the name of label l in the
    features of X, `TrainingView.label_text`, of unit length, and N_l the number of its points,

        mu_l = (sum_i y_il x_i + kappa t_l) / (N_l + kappa)

    The name counts as `name_weight` = kappa more points. It helps most with few points; a label without
    points has only its name.

    The mean is the limit, if all points are far from mu_l, of eq. 6, the maximum of the likelihood;
    `experiments/tried.md` compares them.

    Parameters
    ----------
    gamma : float > 0
        How fast the probability falls with the distance.
    unit_means : bool
        Scale the means to unit length too, so that |x - mu_l|^2 is twice the cosine distance. The mean of
        many points is short, and so, in eq. 7 (False), near to every x, which makes frequent labels look
        probable. The authors of XReg use unit means, which were also better in our measurements.
    max_terms : int or None
        Store only this many of the largest terms of a sparse mean; None stores all. It limits the memory to
        ``8 L max_terms`` bytes. |mu_l| remains that of the whole mean.
    name_weight : float in [0, 1e6] or "auto"
        How many points the name of a label counts for; 0 leaves names out. "auto" is the one of 0, 1/4, 1/2,
        1 and 2 whose nearest labels have the largest PSP@5 on a fifth of the rows, with means of the others;
        1 with fewer than 10 rows. It is 0 if names are not known or X is dense; other numbers are then an
        error.

    Attributes
    ----------
    name_weight_ : float

    Notes
    -----
    A label without a training point, and without a name that counts, has the distance of one whose single
    point shares nothing with x: ``|x - mu_l|^2 = 2``. A row of zeros is that far from every unit mean.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = np.array([[2.0, 0.0], [0.0, 2.0]], np.float32)
    >>> data = TrainingSet(X, sp.csr_matrix(np.eye(2, dtype=np.float32)), np.zeros(2, np.int32))
    >>> tail = TailClassifiers(gamma=2.0).fit(data.view())
    >>> columns = tail.score(X[:1], Candidates.all_labels(1, 2))
    >>> columns["tail classifier: log-probability"].round(4)  # -log(1 + exp(0)), -log(1 + exp(2))
    array([-0.6931, -2.1269], dtype=float32)
    """

    gamma: float = 30.0
    unit_means: bool = True
    max_terms: int | None = None
    name_weight: Any = "auto"

    reads_text: ClassVar[str] = "label_text"
    title: ClassVar[str] = "means of labels and their names"
    is_quick = True
    saved: ClassVar[Spec] = Spec(
        Params(check=lambda scorer: scorer._check_params()),
        Number("name_weight_", 0, _MOST_NAME_WEIGHT, key="name_weight_used"),
        Csr("label_text_", dims=("L", "d"), optional=True),
        Object("means_", LabelMeans, ("L", "d")),
    )

    @property
    def reads_names(self) -> bool:  # type: ignore[override]
        """Whether names count; "auto" is decided by `tuned`."""
        return asks_for_names(self.name_weight)

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> TailClassifiers:
        """Find mu_l from the TrainingView's points. Returns self.

        Raises
        ------
        ValueError, TypeError
            If a parameter is out of range or of the wrong type.
        """
        self._check_params()
        kappa = self._chosen_name_weight(view, n_jobs)
        self.means_: LabelMeans = self._means(view, kappa)
        self.name_weight_ = kappa
        self.label_text_: Any = view.label_text if kappa > 0 else None
        return self

    def tuned(self, view: TrainingView, *, n_jobs: int = 1) -> TailClassifiers:
        """An unfitted copy whose `name_weight` is chosen on this TrainingView."""
        self._check_params()
        kappa = self._chosen_name_weight(view, n_jobs)
        if isinstance(self.name_weight, str) and kappa > 0:
            note(f"TailClassifiers: names count as {kappa:g} rows")
        return clone(self).set_params(name_weight=kappa)

    def _means(self, view: TrainingView, kappa: float) -> LabelMeans:
        X, (indptr, rows) = view.shared("unit-rows", unit_rows), view.rows_by_label
        if kappa == 0:
            return LabelMeans.of_rows(X, indptr, rows, _LONGEST, max_terms=self.max_terms)
        text = as_canonical(unit_rows(view.label_text))
        below = text * np.float32(kappa)
        both = view.shared(f"{_WITH_NAMES} {kappa!r}", lambda _: as_canonical(sp.vstack([X, below], "csr")))
        named = np.flatnonzero(np.diff(text.indptr))
        counts = np.diff(indptr)
        rows = np.insert(rows, indptr[1:][named], X.shape[0] + named).astype(np.int32)
        more = counts + (np.diff(text.indptr) > 0)
        starts = np.concatenate([[0], np.cumsum(more)])
        means = LabelMeans.of_rows(both, starts, rows, _LONGEST, max_terms=self.max_terms)
        # A mean of N + 1 rows, the last of which is kappa long.
        scale = np.where(more > counts, more / (counts + kappa), 1.0)
        return means.scaled(scale)

    def _chosen_name_weight(self, view: TrainingView, n_jobs: int) -> float:
        can = view.label_text is not None and sp.issparse(view.all_X)
        if not isinstance(self.name_weight, str):
            if self.name_weight > 0 and not can:
                raise ValueError(
                    "name_weight must be 0 or 'auto' where labels have no names or X is dense, got "
                    f"{self.name_weight!r}"
                )
            return float(self.name_weight)
        if not can:
            return 0.0
        parts = held_apart(view, view.seed)
        if parts is None:
            return _UNTRIED
        others, held_out, _ = parts
        weights = relevance_weights(view, "inverse-propensity", "default")
        Y = (held_out.Y > 0).astype(np.float32)
        X, quality = held_out.X_as_new_to(others), []
        for kappa in NAME_WEIGHTS:
            tail = clone(self).set_params(name_weight=kappa).fit(others, n_jobs=n_jobs)
            listed = tail.shortlist(X, 5, n_jobs=n_jobs)
            quality.append(evaluate(Y, listed, ["PSP@5"], inv_propensity=weights, n_jobs=n_jobs)["PSP@5"])
        view.release(_WITH_NAMES)  # a copy of all rows for each weight that was tried
        return NAME_WEIGHTS[int(np.argmax(quality))]

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """One float32 column (m,)."""
        how = (float(self.gamma), bool(self.unit_means), n_jobs)
        return {COLUMN: self.means_.tail_log_probability(unit_rows(X), candidates, *how)}

    def shortlist(self, X: Features, k: int, *, n_jobs: int = 1) -> Candidates:
        """The k labels of each row with the nearest means, among those that share a feature with it.

        Parameters
        ----------
        X : features (n, d)
        k : int
        n_jobs : int

        Returns
        -------
        Candidates
            Labels ascend within a row; the score is log P_tail. Ties at the end go to the smaller label id.
            Of dense X all labels share a feature.
        """
        check_integer("k", k, 1)
        X, n_labels, n_threads = unit_rows(X), self.means_.means.shape[0], resolve_n_jobs(n_jobs)
        if isinstance(X, np.ndarray):
            every = Candidates.all_labels(X.shape[0], n_labels)
            scores = self.score(X, every, n_jobs=n_jobs)[COLUMN]
            return Candidates.of_core(every.indptr, every.labels, n_labels, {PROPOSAL: scores}).top(int(k))
        check_width(X, self.means_.means.shape[1])
        indptr, labels, scores = self.means_.index.nearest(
            canonical_parts(X), int(k), float(self.gamma), bool(self.unit_means), n_threads
        )
        return Candidates.of_core(indptr, labels, n_labels, {PROPOSAL: scores})

    def label_texts(self) -> dict[str, sp.csr_matrix]:
        return {} if self.label_text_ is None else {self.reads_text: self.label_text_}

    def _check_params(self) -> None:
        check_real("gamma", self.gamma, *_GAMMAS, "a finite positive number")
        check_flag("unit_means", self.unit_means)
        if self.max_terms is not None:
            check_integer("max_terms", self.max_terms, 1)
        check_name_weight(self.name_weight)


def check_name_weight(value: Any) -> None:
    """Raises unless it is a number of points or "auto"."""
    if not (isinstance(value, str) and value == "auto"):
        check_real("name_weight", value, 0, _MOST_NAME_WEIGHT, "a number in [0, 1e6] or 'auto'")


def asks_for_names(name_weight: Any) -> bool:
    """Whether a weight for names is given."""
    return not isinstance(name_weight, str) and name_weight > 0


def unit_rows(X: Features) -> Features:
    """The rows of X divided by their lengths, zero rows as they are; X itself if they are of unit length."""
    if sp.issparse(X):
        X = as_canonical(X)
        factor = _to_unit(sq_norms(X))
        if np.all(factor == 1):
            return X
        data = (X.data * np.repeat(factor, np.diff(X.indptr))).astype(np.float32)
        return canonical_csr(data, X.indices, X.indptr, X.shape)
    X = dense(X)
    factor = _to_unit(_core.row_norms(X)[0].astype(np.float64))
    return X if np.all(factor == 1) else (X * factor[:, None]).astype(np.float32)


def _to_unit(sq_norm: np.ndarray) -> np.ndarray:
    """1 / length, and 1 where the length is 0 or differs from 1 by no more than rounding."""
    factor = np.ones(len(sq_norm))
    scaled = (sq_norm > 0) & (np.abs(sq_norm - 1) > 1e-6)
    factor[scaled] = 1 / np.sqrt(sq_norm[scaled])
    return factor
