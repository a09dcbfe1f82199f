"""`Ranker`: the protocol of every learner that orders the pairs of a list; scores of held-out lists."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from metarank._util.progress import as_part
from metarank._util.threads import resolve_n_jobs, single_threaded_blas
from metarank._util.typed_base import BaseEstimator
from metarank.persist.fields import Field, Params, Strings
from metarank.persist.spec import Saved, Spec
from metarank.ranker.lists import RankingData
from metarank.scorers.crossfit import over_folds
from metarank.types.boosters import BoosterArrays
from metarank.types.feature_table import FeatureTable

Self = TypeVar("Self", bound="Ranker")


class Ranker(Saved, BaseEstimator):
    """Learns from a `FeatureTable` and the gains of its pairs to score the pairs of a new one.

    The pairs of one row of the table's candidates form a list. A subclass stores its
    parameters in ``__init__`` (keyword only), implements the methods that start with
    an underscore, and says by `saved_with` what it learns; this class checks what they are given.
    """

    # What `make_ranker` calls it.
    name: Any
    names_: list[str]

    def fit(
        self: Self,
        table: FeatureTable,
        gains: np.ndarray,
        *,
        sample_weight: np.ndarray | None = None,
        fold: np.ndarray | None = None,
        seed: int = 0,
        n_jobs: int | None = 1,
    ) -> Self:
        """Learn to order the pairs of each list by gain.

        Parameters
        ----------
        table : FeatureTable
            m pairs in n lists; float32 and finite, as `assemble` makes it.
        gains : array (m,)
            Relevance of each pair, finite and >= 0; relevant means > 0.
        sample_weight : array (n,), optional
            Weight of each list, finite and >= 0, not all zero.
        fold : int array (n,), optional
            Fold of each list, for what is chosen by cross-validation; five folds by hash if absent.
        seed : int
            Whatever is drawn at random is a function of it.
        n_jobs : int, optional
            Threads; the result is the same bytes for any number.

        Raises
        ------
        TypeError, ValueError
            If an argument breaks the rules above, or there is nothing to learn an order from.
        """
        data = RankingData.checked(table, gains, sample_weight, fold, seed)
        return self.fit_lists(data, resolve_n_jobs(n_jobs))

    def fit_lists(self: Self, data: RankingData, n_jobs: int = 1) -> Self:
        """`fit` on lists that are checked already."""
        self._fit(data, n_jobs)
        self.names_ = list(data.table.names)
        return self

    def score(self, table: FeatureTable, *, n_jobs: int | None = 1) -> NDArray[np.float64]:
        """float64 (m,): the higher, the earlier. The score of a pair depends on its own values only.

        Raises
        ------
        ValueError
            If the ranker is not fitted, or the columns are not those seen in fit.
        """
        return self._score(self._checked(table), resolve_n_jobs(n_jobs))

    def trees_in_core(self) -> BoosterArrays | None:
        """Boosted trees, the mean of whose outputs is the score, to the bit; None where it is not."""
        return None

    def contributions(self, table: FeatureTable) -> NDArray[np.float64]:
        """float64 (m, F + 1): each feature's share of the score and, last, the expected score.

        A row sums to the pair's score, up to rounding.
        """
        return self._contributions(self._checked(table))

    def fit_out_of_fold(self, data: RankingData, n_jobs: int = 1) -> np.ndarray:
        """Fit on all lists; return each training pair's score from a fit without its fold, float64 (m,).

        What the thresholds learn from: scores of rows a ranker has seen are too good.
        """
        tuned = self.tuned(data, n_jobs)
        n_folds = len(np.unique(data.fold))
        with as_part("held out", 0.0, n_folds / (n_folds + 1)):
            scores = cross_fit_scores(tuned, data, n_jobs)
        with as_part("on all folds", n_folds / (n_folds + 1), 1 / (n_folds + 1)):
            fitted = clone(tuned).fit_lists(data, n_jobs)
        # What was learned comes over; the parameters stay as the user gave them.
        self.__dict__.update({k: v for k, v in vars(fitted).items() if k.endswith("_")})
        return scores

    def summary(self) -> str:
        """One line for a person."""
        return str(self.name)

    def tuned(self: Self, data: RankingData, n_jobs: int) -> Self:
        """An unfitted copy whose free parameters are tuned on these data, by cross-validation."""
        copy: Self = clone(self)
        return copy

    def can_learn(self, data: RankingData) -> bool:
        """Whether there is anything to learn from; the folds for which there is not score all pairs alike."""
        return True

    def _checked(self, table: FeatureTable) -> FeatureTable:
        if not hasattr(self, "names_"):
            raise ValueError(f"{type(self).__name__} must be fitted before it scores")
        if list(table.names) != self.names_:
            missing = [name for name in self.names_ if name not in table.names]
            new = [name for name in table.names if name not in self.names_]
            what = f"without {missing} and with {new}" if missing or new else "in another order"
            raise ValueError(f"table.names must be those seen in fit, got the columns {what}")
        return table

    @abstractmethod
    def _fit(self, data: RankingData, n_jobs: int) -> None: ...

    @abstractmethod
    def _score(self, table: FeatureTable, n_jobs: int) -> np.ndarray: ...

    @abstractmethod
    def _contributions(self, table: FeatureTable) -> np.ndarray: ...


def saved_with(*fitted: Field, params: Params | None = None) -> Spec:
    """The spec of a ranker that learns these: their sizes may name the number of columns, "columns"."""
    return Spec(params or Params(), Strings("names_", "columns"), *fitted)


def cross_fit_scores(ranker: Ranker, data: RankingData, n_jobs: int = 1) -> np.ndarray:
    """Scores of all training pairs, each from a ranker that was not trained on the pair's list; see `trials`.

    Parameters
    ----------
    ranker : Ranker
        Stays unfitted; what it chooses by cross-validation is chosen once, on all folds.
    data : RankingData
        With at least two folds. A part without training pairs scores 0.

    Returns
    -------
    float64 array (m,)
    """
    with single_threaded_blas():
        tuned = ranker.tuned(data, n_jobs)
        return trial_scores(lambda seen, threads: clone(tuned).fit_lists(seen, threads), tuned, data, n_jobs)


def trial_scores(
    fit: Callable[[RankingData, int], Ranker], ranker: Ranker, data: RankingData, n_jobs: int
) -> np.ndarray:
    """Scores (m,) of the lists of each trial by `fit(lists it learns from, threads)`; 0 where `ranker` cannot
    learn from them."""
    trials = data.trials()

    def one_part(number: int, threads: int) -> np.ndarray:
        seen, held_out = data.learned_in(trials[number]), data.lists(trials[number].held_out)
        if not ranker.can_learn(seen):
            return np.zeros(len(held_out.gains))
        return fit(seen, threads).score(held_out.table, n_jobs=threads)

    scores = np.zeros(data.table.candidates.n_pairs)
    with single_threaded_blas():
        for trial, held_out in zip(trials, over_folds(one_part, np.arange(len(trials)), n_jobs)):
            scores[data.pairs_of(trial.held_out)] = held_out
    return scores
