"""`Dropout`: entries that a training step leaves out at random.

The choice follows from the seed and the number of the step alone, not from threads or the device.
"""

from __future__ import annotations

import numpy as np


class Dropout:
    """Entries of vectors, each left out with probability `rate` (Srivastava et al., 2014).

    Parameters
    ----------
    rate : float in [0, 1)
    seed, epoch, step : int

    Examples
    --------
    >>> Dropout(0.5, seed=0, epoch=0, step=0).mask(2, 3)
    array([[2., 2., 0.],
           [0., 2., 2.]], dtype=float32)
    """

    def __init__(self, rate: float, seed: int, epoch: int, step: int) -> None:
        self.rate = rate
        # A key of its own: order and sampled labels of the epoch are drawn from (seed, epoch).
        self._rng = np.random.default_rng(np.random.SeedSequence([seed, epoch], spawn_key=(step,)))

    def mask(self, n: int, width: int) -> np.ndarray | None:
        """Factors for vectors, float32 (n, width): 0, or 1 / (1 - rate), which keeps the mean.

        Returns None for rate 0; then no factors are drawn or applied.
        """
        if self.rate == 0:
            return None
        kept = self._rng.random((n, width), dtype=np.float32) >= self.rate
        return kept * np.float32(1 / (1 - self.rate))
