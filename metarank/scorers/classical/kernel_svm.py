"""`KernelSVM`: one-vs-rest support vector machines with a Gaussian kernel, predicted in the core."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.svm import SVC

from metarank._util.parameters import with_parameters
from metarank._util.progress import report
from metarank.persist.fields import Array, Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.classical.kernels import Kernel
from metarank.scorers.crossfit import scatter_folds
from metarank.scorers.sizes import DESCRIBE, FIT, FitSizes, MemoryPart
from metarank.types.arrays import require_rows
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingSet, View


@with_parameters
class KernelSVM(LabelScorer):
    """The margin of an SVM with kernel ``exp(-gamma ||x - z||^2)``, one for each label.

    Trained by libsvm on one Gram matrix for all labels and folds; evaluated in the core, where one
    row of kernel values serves all labels.

    Parameters
    ----------
    C : float
        Weight of the loss.
    gamma : float or "scale"
        "scale": 1 / d, d the number of columns, which have unit variance.
    max_rows : int
        Rows the View may have; memory grows with their square.

    Notes
    -----
    Column: ``svm``. A label without relevant (or without irrelevant) rows in the View scores -1 (or 1).

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = np.array([[2.0], [1.0], [-1.0], [-2.0]], np.float32)
    >>> Y = sp.csr_matrix(np.array([[1], [1], [0], [0]], np.float32))
    >>> scorer = KernelSVM().fit(TrainingSet(X, Y, np.zeros(4)).view())
    >>> scorer.score(X, Candidates.all_labels(4, 1))["svm"] > 0
    array([ True,  True, False, False])
    """

    C: float = 1.0
    gamma: float | str = "scale"
    max_rows: int = 10_000

    is_classifier = True
    score_without_rows = -1.0

    saved = Spec(
        Params(),
        Object("kernel_", Kernel, ("d",), inline=True),
        Array("support_", np.float32, ("support", "d")),
        Array("bias_", np.float32, ("L",)),
        Array("dual_", np.float32, ("L", "support")),
    )

    def fit(self, view: View, *, n_jobs: int = 1) -> KernelSVM:
        """Learn from the rows of the View. Returns self.

        Raises
        ------
        ValueError
            If `C` or `gamma` is not positive, or the View has more than `max_rows` rows.
        """
        self._tune(view)
        rows = self.kernel_.rows(view.X)
        return self._solve(self.kernel_.matrix(rows, rows, n_jobs), rows, view)

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray | None = None, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """Columns of training rows, as from fits without the row's fold; one Gram matrix serves all."""
        rows = np.arange(len(data.fold)) if rows is None else rows
        whole = clone(self)
        whole._tune(data.view())
        support = whole.kernel_.rows(data.X)
        gram = whole.kernel_.matrix(support, support, n_jobs)

        def one_fold(fold: int, threads: int) -> dict[str, np.ndarray]:
            view = data.without_fold(fold)
            held_out = np.flatnonzero(data.fold[rows] == fold)
            fitted = clone(self)
            fitted._tune(view)
            fitted._solve(gram[np.ix_(view.rows, view.rows)], support[view.rows], view)
            return fitted.score(data.X[rows[held_out]], candidates.rows(held_out), n_jobs=threads)

        return scatter_folds(one_fold, data.fold[rows], candidates, n_jobs)

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        return {"svm": self.kernel_.machine(X, self.support_, self.dual_, self.bias_, candidates, n_jobs)}

    def _tune(self, view: View) -> None:
        for name, value in (("C", self.C), ("gamma", self.gamma)):
            if (name, value) != ("gamma", "scale") and not (
                isinstance(value, (int, float)) and 0 < value < np.inf
            ):
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        require_rows(view)
        if view.n_rows > self.max_rows:
            raise ValueError(f"the View must have at most max_rows={self.max_rows} rows, got {view.n_rows}")
        gamma = 1.0 / max(1, view.n_features) if isinstance(self.gamma, str) else float(self.gamma)
        self.kernel_ = Kernel("rbf", gamma)

    def _solve(self, gram: np.ndarray, support: np.ndarray, view: View) -> KernelSVM:
        relevant = view.Y.toarray() > 0
        n, n_labels = relevant.shape
        dual = np.zeros((n_labels, n), np.float32)
        bias = np.full(n_labels, -1.0, np.float32)
        for label in range(n_labels):
            report(f"label {label} of {n_labels}", label / n_labels)
            y = relevant[:, label]
            if y.all() or not y.any():
                bias[label] = 1.0 if n and y.all() else -1.0
                continue
            svm = SVC(C=self.C, kernel="precomputed", cache_size=64, random_state=0).fit(gram, y)
            dual[label, svm.support_] = svm.dual_coef_[0]
            bias[label] = svm.intercept_[0]
        used = np.flatnonzero((dual != 0).any(axis=0))
        self.support_, self.dual_, self.bias_ = support[used], np.ascontiguousarray(dual[:, used]), bias
        return self

    def memory(self, sizes: FitSizes, *, keeps_products: bool) -> list[MemoryPart]:
        n, name = sizes.n_rows, type(self).__name__
        matrices = f"matrices of {name}, {n} x {n}"
        return [MemoryPart(matrices, 3 * 8 * n * n, (DESCRIBE, FIT), "take effort='low'")]
