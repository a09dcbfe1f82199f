"""`RankSVM`: pairs of pairs in the right order, with a margin."""

from __future__ import annotations

from metarank import _core
from metarank.ranker.linear_ranker import LinearRanker


class RankSVM(LinearRanker):
    """Linear scores with a margin between every two pairs of a list with different gains (Joachims 2002).

    Minimises the mean over lists of the mean of ``max(0, 1 - (s_i - s_j))²`` over all i, j with
    gain_i > gain_j, plus ``l2 / 2 |w|²``. The mean within a list keeps long lists from ruling
    (Cao et al. 2006, the form made for retrieval); the squared hinge makes it smooth. All such
    i, j count, in O(n log n) for a list of n.

    Parameters
    ----------
    l2 : float or "auto"
        Penalty; "auto" chooses by cross-validation over the folds of the lists.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> table = FeatureTable(np.float32([[1], [3], [2], [0]]), ["nearness"], Candidates.all_labels(2, 2))
    >>> RankSVM(l2=0.1).fit(table, np.array([0, 1, 1, 0])).score(table).argsort()
    array([3, 0, 2, 1])
    """

    name = "ranksvm"
    _list_loss = staticmethod(_core.ranksvm_loss)
    _bend = 4.0
