"""`Dropout`: what a step of the training leaves out at random, of its texts and of their vectors.

What is left out follows from the seed and the number of the step alone, not from threads or the device.
"""

from __future__ import annotations

import numpy as np

from metarank.text.subwords import TokenLists


class Dropout:
    """Subwords of texts and entries of q, each left out with probability `rate` (Srivastava et al., 2014).

    A label's vector needs none of its own: an entry of q that is left out leaves out that of f in q . f.

    Parameters
    ----------
    rate : float in [0, 1)
    seed, epoch, step : int

    Examples
    --------
    >>> Dropout(0.5, seed=0, epoch=0, step=0).mask(2, 3)
    array([[2., 0., 2.],
           [0., 0., 2.]], dtype=float32)
    """

    def __init__(self, rate: float, seed: int, epoch: int, step: int) -> None:
        self.rate = rate
        # A key of its own: order and sampled labels of the epoch are drawn from (seed, epoch).
        self._rng = np.random.default_rng(np.random.SeedSequence([seed, epoch], spawn_key=(step,)))

    def thinned(self, texts: TokenLists) -> TokenLists:
        """The texts without the subwords left out; a text that would lose all of them keeps them."""
        if self.rate == 0:
            return texts
        kept = self._rng.random(len(texts.tokens)) >= self.rate
        lengths = np.diff(texts.indptr)
        row = np.repeat(np.arange(texts.n_rows), lengths)
        kept |= (np.bincount(row[kept], minlength=texts.n_rows) == 0)[row]
        counts = np.bincount(row[kept], minlength=texts.n_rows)
        return TokenLists(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), texts.tokens[kept])

    def mask(self, n: int, width: int) -> np.ndarray | None:
        """Float32 (n, width), what vectors are multiplied by: 0, or 1 / (1 - rate) so that means stay.

        None for rate 0: nothing is multiplied then.
        """
        if self.rate == 0:
            return None
        kept = self._rng.random((n, width)) >= self.rate
        return kept.astype(np.float32) / np.float32(1 - self.rate)
