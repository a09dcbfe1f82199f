"""Evidence from others: `GivenScorer` for the candidates of one source, `PairFeatures` for features of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.elementary import log, log2
from metarank._util.parameters import with_parameters
from metarank.persist.fields import Array, Declared, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import scatter_folds
from metarank.scorers.neighbors.training_rows import check_lists
from metarank.scorers.sizes import DESCRIBE, FIT, FitSizes, MemoryPart
from metarank.types.candidates import Candidates
from metarank.types.given import Given
from metarank.types.view import TrainingSet, View

# The best scores of all training lists fall into bins that grow by a factor; the first holds so many pairs.
_FIRST_BIN, _BIN_GROWTH = 30, 1.3
# Places 0, 1, 2, ... of a list fall into bins that grow by a factor too.
PLACES = np.unique(np.round(1.25 ** np.arange(35)).astype(np.int64))
# Pairs of the general rate in a rate of few pairs.
_RATE_PAIRS = 5.0
_BIN_PAIRS = 2.0
# The range of the pairs that a label's own record is weighed against.
_LEAST_WEIGHT, _MOST_WEIGHT = 0.3, 50.0
_LEAST_CHANCE, _MOST_CHANCE = 1e-7, 0.99
# The logarithm of a score that has none is so far below the least that there is.
_BELOW = 1.0


@with_parameters
class GivenScorer(LabelScorer):
    """What the candidates of one source say of a pair, and how often the source is right.

    Of a pair that the source proposes, with score s at place r = 0, 1, ... of the row's list (by score, ties
    by label id):

    ========================= ==========================================================================
    ``<source>_score``        s
    ``<source>_log``          log s; where s <= 0, the least logarithm of the training scores less 1
    ``<source>_place``        1 / log2(r + 2)
    ``<source>_share``        s over the best score of the list
    ``<source>_z``            (s - mean of the list) / standard deviation of the list
    ``<source>_present``      1
    ``<source>_right_at``     how often a pair of such a place is relevant
    ``<source>_right``        how often the source is right for the label: (h + 5 q) / (c + 5), for h relevant
                              ones of c proposals and the rate q of all proposals
    ``<source>_odds``         log of the chance of relevance by the score, times how much oftener than its
                              scores say the source is right for the label: (h + a) / (e + a), where e is
                              the sum of the chances of the c proposals, and a is set by how far labels
                              differ (moments of a gamma distribution)
    ========================= ==========================================================================

    Of other pairs, score, logarithm and z are just below the least of the row's list (0 where the list is
    empty), place, share and present are 0, and the last three tell how often a label that the source does not
    propose is relevant. A chance by the score is monotone: the rates of bins of scores, pooled where they
    decrease. Training rows without a relevant label tell nothing of a source and are not counted.

    The source proposes all pairs that were given, however many are asked for.

    Parameters
    ----------
    source : str
        The name under which the candidates are given.

    Examples
    --------
    >>> from metarank.types.view import TrainingSet
    >>> S = sp.csr_matrix(np.float32([[0.9, 0.1], [0.8, 0.3], [0.2, 0.7]]))
    >>> Y = sp.csr_matrix(np.float32([[1, 0], [1, 0], [0, 1]]))
    >>> given = Given(3, 2, {"bm25": S})
    >>> data = TrainingSet(np.zeros((3, 0), np.float32), Y, np.zeros(3), given=given)
    >>> columns = GivenScorer(source="bm25").fit(data.view()).score(given[:1], Candidates.all_labels(1, 2))
    >>> columns["bm25_score"], columns["bm25_place"].round(2)
    (array([0.9, 0.1], dtype=float32), array([1.  , 0.63], dtype=float32))
    """

    source_name: str = "given"

    reads_given = True
    is_quick = True

    saved = Spec(
        Params(),
        Declared("n_labels_", size="L"),
        Array("edges_", np.float32, ("edges",)),
        Array("chance_", np.float64, (lambda known: known["edges"] + 1,), least=0, below=1),
        Array("right_at_", np.float64, (len(PLACES) + 1,), least=0, below=1),
        Array("right_", np.float32, ("L",), least=0),
        Array("lift_", np.float32, ("L",), above=0),
        Array("missed_", np.float32, ("L",), least=0),
        Array("least_log_", np.float64, ()),
    )
