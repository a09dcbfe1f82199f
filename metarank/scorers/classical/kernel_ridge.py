"""`KernelRidge`: regularised least squares on the labels, one factorisation for all of them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from metarank._util.parameters import check_choice, with_parameters
from metarank._util.progress import report
from metarank._util.threads import single_threaded_blas
from metarank.persist.fields import Array, Number, Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.classical.kernels import METRICS, GramScorer, Kernel, ridge_term, tuned_kernel
from metarank.types.arrays import linear_scores
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView

_LINEAR_ALPHA = 0.3


def _is_dual(scorer: Any) -> bool:
    return scorer.kernel_ is not None


@with_parameters
class KernelRidge(GramScorer):
    """The kernel ridge regression of each label's 0/1 column.

    With the Gram matrix K of the TrainingView's rows and Y its 0/1 label matrix, the dual coefficients are
    ``A = (K + 1 + alpha m I)^-1 Y`` and the scores ``(k(x) + 1) A``, m the mean of K's diagonal;
    the constant kernel 1 is the intercept. One Cholesky factorisation serves all labels.

    Parameters
    ----------
    kernel : "auto", "rbf", "laplacian" or "linear"
        "rbf" is ``exp(-gamma ||x - z||_2^2)``, "laplacian" ``exp(-gamma ||x - z||_1)``; sparse rows are
        made dense for them. "auto": "rbf" for dense X, "linear" for sparse X.
    gamma, alpha : float or "auto"
        "auto": the values with the least squared error on held-out folds of at most 1,000 rows of the
        TrainingView (for the linear kernel alpha is then 0.3).
    scaling : "auto", "unit" or "raw"
        Whether distances are between scaled columns or columns as given; "auto" chooses along with
        gamma.
    max_rows : int
        Rows the TrainingView may have; memory grows with their square.

    Notes
    -----
    Column: ``rbf_ridge``, ``laplacian_ridge`` or ``linear_ridge``. A label without relevant (or without
    irrelevant) rows in the TrainingView scores 0 (or 1) for every row.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = np.array([[2.0], [1.0], [-1.0], [-2.0]], np.float32)
    >>> Y = sp.csr_matrix(np.array([[1], [1], [0], [0]], np.float32))
    >>> scorer = KernelRidge(gamma=0.5, alpha=0.1).fit(TrainingSet(X, Y, np.zeros(4)).view())
    >>> scorer.score(X, Candidates.all_labels(4, 1))["ridge with rbf kernel: score"].round(1)
    array([1., 1., 0., 0.], dtype=float32)
    """

    kernel: str = "auto"
    gamma: float | str = "auto"
    alpha: float | str = "auto"
    scaling: str = "auto"
    max_rows: int = 10_000

    score_without_rows = 0.0

    saved: ClassVar[Spec] = Spec(
        Params(),
        Object("kernel_", Kernel, ("d",), optional=True),
        Number("alpha_", 0),
        Array("bias_", np.float32, ("L",)),
        Array("weights_", np.float32, ("d", "L"), when=lambda scorer: scorer.kernel_ is None),
        Array("support_", np.float32, ("support", "d"), when=_is_dual),
        Array("dual_", np.float32, ("L", "support"), when=_is_dual),
    )

    def tuned(self, view: TrainingView, *, n_jobs: int = 1) -> KernelRidge:
        """An unfitted copy whose free parameters are tuned on this TrainingView."""
        return clone(self).set_params(**self._chosen(view, n_jobs))

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        if self.kernel_ is None:
            return {"linear ridge: score": linear_scores(X, self.weights_, self.bias_, candidates, n_jobs)}
        arrays = self.support_, self.dual_, self.bias_
        scores = self.kernel_.machine(X, arrays, candidates, n_jobs)
        return {f"ridge with {self.kernel_.name} kernel: score": scores}

    def _chosen(self, view: TrainingView, n_jobs: int) -> dict[str, Any]:
        """Parameters with nothing left to choose."""
        check_choice("kernel", self.kernel, ("auto", "linear", *METRICS))
        check_choice("scaling", self.scaling, ("auto", "unit", "raw"))
        for name, value in (("gamma", self.gamma), ("alpha", self.alpha)):
            if value != "auto" and not (isinstance(value, (int, float)) and 0 < value < np.inf):
                raise ValueError(f"{name} must be 'auto' or a positive number, got {value!r}")
        self._check_view(view)
        name = self.kernel if self.kernel != "auto" else "linear" if sp.issparse(view.all_X) else "rbf"
        if name == "linear":
            return {"kernel": name, "alpha": _LINEAR_ALPHA if self.alpha == "auto" else float(self.alpha)}
        if "auto" not in (self.gamma, self.alpha, self.scaling):
            return {"kernel": name}
        with single_threaded_blas():
            kernel, alpha = tuned_kernel(
                view,
                name,
                gamma=None if self.gamma == "auto" else float(self.gamma),
                alpha=None if self.alpha == "auto" else float(self.alpha),
                scaling=self.scaling,
                n_jobs=n_jobs,
            )
        scaling = "unit" if kernel.scale is None else "raw"
        return {"kernel": name, "gamma": kernel.gamma, "alpha": alpha, "scaling": scaling}

    def _tune(self, view: TrainingView, n_jobs: int) -> None:
        """Set `kernel_` and `alpha_`, choosing what is left open."""
        params = {**self.get_params(), **self._chosen(view, n_jobs)}
        self.alpha_: float = float(params["alpha"])
        self.kernel_ = None
        if params["kernel"] != "linear":
            applied = view.feature_scale if params["scaling"] == "raw" else None
            scale = None if applied is None else (1.0 / applied).astype(np.float32)
            self.kernel_ = Kernel(params["kernel"], float(params["gamma"]), scale)

    def _solve(self, gram: np.ndarray, view: TrainingView) -> None:
        # A factorisation of each fold's own: the closed form through the inverse of all rows would carry the
        # fold's labels in its rounding.
        relevant = (view.Y.toarray() > 0).astype(np.float64)
        everywhere = relevant.all(axis=0)
        ridge = ridge_term(gram, self.alpha_)
        gram += 1.0
        gram[np.diag_indices_from(gram)] += ridge
        report("factoring", 0.3)
        # The transpose of a symmetric matrix is the same matrix in the order LAPACK works in, without a copy.
        factor = scipy.linalg.cho_factor(gram.T, lower=True, overwrite_a=True, check_finite=False)
        report("solving", 0.7)
        dual = scipy.linalg.cho_solve(factor, relevant, check_finite=False)
        dual[:, everywhere] = 0.0
        self.bias_: NDArray[np.float32] = np.where(everywhere, 1.0, dual.sum(axis=0)).astype(np.float32)
        if self.kernel_ is not None:
            self.support_: NDArray[np.float32] = self.kernel_.rows(view.X)
            self.dual_: NDArray[np.float32] = np.ascontiguousarray(dual.T, np.float32)
        else:
            self.weights_: NDArray[np.float32] = np.ascontiguousarray(view.X.T @ dual, np.float32)
