"""`ListNet`: the top-one cross entropy of Cao et al. 2007."""

from __future__ import annotations

from metarank import _core
from metarank.ranker.linear_ranker import LinearRanker


class ListNet(LinearRanker):
    """Linear scores whose softmax over a list matches the list's gains (Cao et al. 2007, eq. 6).

    Minimises the mean over lists of ``-sum_j P_j log softmax(s)_j`` plus ``l2 / 2 |w|²``, with
    ``P_j = gain_j / sum of gains`` (their P with the identity for phi: an irrelevant pair gets
    no probability). Convex, and solved to the optimum. Lists whose gains are all equal are left out.

    Parameters
    ----------
    l2 : float or "auto"
        Penalty; "auto" chooses by cross-validation over the folds of the lists.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.types.candidates import Candidates
    >>> from metarank.types.feature_table import FeatureTable
    >>> pairs = Candidates.all_labels(20, 3)
    >>> table = FeatureTable(np.tile(np.float32([[1], [3], [2]]), (20, 1)), ["nearness"], pairs)
    >>> ranker = ListNet(l2=0.1).fit(table, np.tile([0, 1, 0], 20))
    >>> ranker.score(table)[:3].round(1)
    array([-2.1,  2.1,  0. ])
    """

    name = "listnet"
    _list_loss = staticmethod(_core.listnet_loss)
