"""`ThresholdLearner`: probabilities and label sets from the scores of any model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from metarank._util.parameters import RandomState, check_random_state, one_target, seed_of
from metarank.metrics import evaluate
from metarank.persist.fields import Integer, Object, Params, Strings
from metarank.persist.savable import Savable
from metarank.persist.spec import Spec
from metarank.thresholds.costs import Costs
from metarank.thresholds.guarantees import CONFIDENCE, Guarantees, parse_wish
from metarank.thresholds.learned_thresholds import LearnedThresholds
from metarank.thresholds.score_matrix import ScoreMatrix
from metarank.thresholds.set_metrics import check_metric
from metarank.types.checks import check_same_order
from metarank.types.row_groups import check_groups


@dataclass(eq=False, repr=False)
class ThresholdLearner(Savable):
    """Decide from the scores of any model which labels to keep: thresholds alone.

    The scores are calibrated, and a threshold is learned for each of five metrics of label sets.

    Parameters
    ----------
    threshold : str
        "auto", or a family of thresholds for all metrics: "instance" (least squares on the row's scores; Yang
        & Gopal 2012, section 2.3), "label", "half-f1", "global" or "expected-f1". "auto" takes for each
        metric the rule that is best where probabilities are right: for micro-F1 one threshold, for macro-F1
        one for each label ("half-f1" where not all labels are candidates of all rows), for example-F1 the set
        of greatest expected F1 of each row, for Hamming loss probability 0.5, for subset accuracy the most
        probable set. A threshold learned on the labels alone replaces it where it is better in
        cross-validation by more than two standard errors (checked up to 500,000 pairs).
    optimize : "micro-f1", "macro-f1", "example-f1", "hamming", "subset-accuracy", or a guarantee
        The metric that `predict` optimizes and `score` measures; or "recall>=0.9" or "precision>=0.8" (any
        level): see Notes. `fit` learns the thresholds of all, so `predict` can take another one.
    confidence : float in (0, 1)
        Share of the draws of training rows in which a guarantee holds.
    random_state : int, None, RandomState or Generator
        Seed of the folds. The same seed and data give the same bytes.

    Attributes
    ----------
    n_features_in_ : int
        L, the number of labels.
    learned_ : LearnedThresholds
        Its `calibrator_`, the threshold of each metric (`by_metric_`), and `held_out_`, the value of each
        metric on rows that the thresholds were not learned on.
    n_listed_ : int or None
        How many labels of a row, its best ones, may be kept; None for all. In a dense matrix of 200 labels
        or more these are 100, or twice as many as a row has, since others are never kept and cost time; all
        if `optimize` guarantees a recall.
    random_state_ : int
        The seed of the fit.
    feature_names_in_ : object array (L,)
        Names of the columns of S, where it was a data frame. Data frames of other names are refused.

    Notes
    -----
    `fit` needs scores like those that `predict` will get: from a model that has not seen the rows. Scores of
    training rows look too good. Use those of other rows, or out-of-fold ones (``cross_val_predict``).

    *Guarantees.* Recall is the mean over rows of the share of a row's relevant labels that are kept; rows
    without a relevant label are left out. Precision is the mean of the share of a row's kept labels that are
    relevant; rows of which nothing is kept are left out. With `groups`, groups take the place of rows.
    `predict` keeps the smallest sets whose recall holds, or the largest whose precision holds, even if the
    scores or the calibration are poor: if new rows are exchangeable with the training rows, the expected
    recall or precision of new rows is at least that level with a probability of at least `confidence`
    (recall: also on average over all draws, by conformal risk control, Angelopoulos et al. 2022).
    `Guarantees` has the method, the margin that n rows cost, about ``sd sqrt(2 log(1 / (1 - confidence)) /
    n)``, and what makes it approximate. A guarantee that cannot be kept raises a ValueError that names the
    best possible one.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> S = rng.normal(size=(300, 4))
    >>> Y = (S + rng.normal(size=S.shape) > 1).astype(int)
    >>> learner = ThresholdLearner().fit(S[:200], Y[:200])
    >>> learner.predict(S[200:]).shape
    (100, 4)
    >>> learner.score(S[200:], Y[200:]) > 0.5
    True
    >>> wide = learner.predict(S[200:], optimize="recall>=0.8")
    >>> wide.nnz > learner.predict(S[200:]).nnz
    True
    """

    threshold: str = "auto"
    optimize: str = "micro-f1"
    confidence: float = CONFIDENCE
    random_state: RandomState = 0

    saved: ClassVar[Spec] = Spec(
        Params(seeded=2**31 - 1, check=lambda learner: learner._check_parameters()),
        Integer("n_features_in_", least=1, most=2**31 - 1, size="L"),
        Integer("n_listed_", least=1, most=2**31 - 1, optional=True),
        Strings(
            "feature_names_in_",
            "L",
            optional=True,
            key="names",
            of=lambda learner: getattr(learner, "feature_names_in_", None),
            into=lambda names: np.array(names, object),
        ),
        Object("learned_", LearnedThresholds),
    )

    def fit(self, S: Any, Y: Any = None, *, y: Any = None, groups: Any = None) -> ThresholdLearner:
        """Learn the calibration and the thresholds of all metrics.

        Parameters
        ----------
        S : array-like, data frame or sparse matrix (n, L)
            Scores of any scale between 1e-11 and 3e38, from a model that has not seen these rows. The stored
            entries of a sparse matrix, zeros included, are the candidates of a row.
        Y : (n, L) indicator or grades (dense or sparse), or a list of n lists of label ids
            Relevant means > 0. Relevant labels outside the candidates count as missed. Where nothing is
            relevant, nothing is kept.
        y : optional
            The name of Y in scikit-learn; pass one of the two.
        groups : array-like (n,), optional
            Rows with the same value, such as pages of one document, stay on one side of every split, as do
            rows with the same scores. At least two groups.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an input or a parameter is invalid, or the guarantee of `optimize` cannot be kept. The message
            names it.
        """
        Y = one_target(Y, y)
        self._check_parameters()
        check_same_order(S=S, Y=Y)
        given = ScoreMatrix.read(S)
        validate_data(self, S, skip_check_array=True)
        names, of_labels = getattr(self, "feature_names_in_", None), getattr(Y, "columns", None)
        if names is not None and of_labels is not None and list(of_labels) != list(names):
            raise ValueError(f"Y must have the columns of S, {list(names)[:5]}, got {list(of_labels)[:5]}")
        labels = given.checked_labels(Y)
        wish = parse_wish(self.optimize)
        n_listed = None if wish is not None and wish.of == "recall" else given.listed(labels)
        given = given.best(n_listed)
        relevant, missed = given.relevance(labels)
        n = given.candidates.n_rows
        groups = check_groups(groups, n)
        seed = seed_of(self.random_state)
        learned = LearnedThresholds(self.threshold).fit(
            given.candidates,
            given.scores,
            relevant,
            fold=np.zeros(n, np.int32),
            missed=missed,
            seed=seed,
            group=given.units(groups),
            draws_whole_groups=groups is not None,
            confidence=self.confidence,
        )
        learned.check_metric(self.optimize)
        self.learned_: LearnedThresholds = learned
        self.n_listed_: int | None = n_listed
        self.random_state_: int = seed
        return self

    def _check_parameters(self) -> None:
        LearnedThresholds(self.threshold)
        if not isinstance(check_metric(self.optimize), str):
            raise ValueError(
                f"optimize must be a metric or a guarantee, got {self.optimize!r:.80}: pass costs to predict"
            )
        Guarantees(self.confidence)
        check_random_state(self.random_state)

    # --- prediction ----------------------------------------------------------

    def predict(self, S: Any, optimize: Any = None) -> sp.csr_matrix:
        """Label sets, CSR (n, L) of int8 ones; each row is decided separately.

        Parameters
        ----------
        S : as in `fit`
            With the L columns of the fit.
        optimize : str or costs, optional
            The metric or the guarantee, instead of that of the constructor; or what mistakes cost, as in
            `MetaRanker.predict`.
        """
        given = self._read(S).best(self.n_listed_)
        metric = self.learned_.check_metric(self.optimize if optimize is None else optimize)
        if isinstance(metric, Costs):
            metric = metric.check(self.n_features_in_, getattr(self, "feature_names_in_", None))
        kept = given.candidates.where(self.learned_.keep(given.candidates, given.scores, metric))
        return kept.to_csr(np.ones(kept.n_pairs, np.int8))

    def predict_proba(self, S: Any) -> NDArray[np.float32] | sp.csr_matrix:
        """Calibrated probabilities of relevance, float32 (n, L).

        Returns
        -------
        ndarray for dense S; for sparse S a CSR matrix with the same stored entries
        """
        given = self._read(S)
        return given.matrix_of(self.learned_.probabilities(given.candidates, given.scores))

    def score(self, S: Any, Y: Any = None, *, y: Any = None) -> float:
        """The metric of `optimize` for the label sets of rows; greater is better, so Hamming loss is
        negated. For a guarantee, the recall or precision attained (0 where no row counts).

        Parameters
        ----------
        S, Y, y : as in `fit`
            Relevant labels outside the candidates count as missed.
        """
        Y = one_target(Y, y)
        metric = str(check_metric(self.optimize))
        relevant, sets = self._read(S).checked_labels(Y), self.predict(S)
        wish = parse_wish(metric)
        name = "Hamming" if metric == "hamming" else metric.replace("f1", "F1")
        name = name if wish is None else f"example-{wish.of}"
        value = evaluate(relevant, None, [name], Y_pred=sets)[name]
        return -value if metric == "hamming" else float(np.nan_to_num(value))

    def _read(self, S: Any) -> ScoreMatrix:
        check_is_fitted(self, "learned_")
        scores = ScoreMatrix.read(S, self.n_features_in_, least=0)
        validate_data(self, S, skip_check_array=True, reset=False)
        return scores

    def summary(self) -> str:
        """The family of each metric's threshold, on one line."""
        check_is_fitted(self, "learned_")
        return self.learned_.summary()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        return tags
