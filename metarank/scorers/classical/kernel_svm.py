"""`KernelSVM`: one-vs-rest support vector machines with a Gaussian kernel, predicted in the core."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from metarank._util.parameters import with_parameters
from metarank._util.progress import report
from metarank.persist.fields import Array, Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.classical.kernels import GramScorer, Kernel
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView


@with_parameters
class KernelSVM(GramScorer):
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
        Rows the TrainingView may have; memory grows with their square.

    Notes
    -----
    Column: ``kernel SVM: margin``. A label without relevant (or without irrelevant) rows scores
    -1 (or 1).

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = np.array([[2.0], [1.0], [-1.0], [-2.0]], np.float32)
    >>> Y = sp.csr_matrix(np.array([[1], [1], [0], [0]], np.float32))
    >>> scorer = KernelSVM().fit(TrainingSet(X, Y, np.zeros(4)).view())
    >>> scorer.score(X, Candidates.all_labels(4, 1))["kernel SVM: margin"] > 0
    array([ True,  True, False, False])
    """

    C: float = 1.0
    gamma: float | str = "scale"
    max_rows: int = 10_000
    kernel_: Kernel = field(init=False)

    score_without_rows = -1.0

    saved: ClassVar[Spec] = Spec(
        Params(),
        Object("kernel_", Kernel, ("d",)),
        Array("support_", np.float32, ("support", "d")),
        Array("bias_", np.float32, ("L",)),
        Array("dual_", np.float32, ("L", "support")),
    )

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        arrays = self.support_, self.dual_, self.bias_
        return {"kernel SVM: margin": self.kernel_.machine(X, arrays, candidates, n_jobs)}

    def _tune(self, view: TrainingView, n_jobs: int) -> None:
        for name, value in (("C", self.C), ("gamma", self.gamma)):
            if (name, value) != ("gamma", "scale") and not (
                isinstance(value, (int, float)) and 0 < value < np.inf
            ):
                raise ValueError(f"{name} must be a positive number, got {value!r}")
        self._check_view(view)
        gamma = 1.0 / max(1, view.n_features) if isinstance(self.gamma, str) else float(self.gamma)
        self.kernel_ = Kernel("rbf", gamma)

    def _solve(self, gram: np.ndarray, view: TrainingView) -> None:
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
        self.support_: NDArray[np.float32] = self.kernel_.rows(view.X)[used]
        self.dual_: NDArray[np.float32] = np.ascontiguousarray(dual[:, used])
        self.bias_: NDArray[np.float32] = bias
