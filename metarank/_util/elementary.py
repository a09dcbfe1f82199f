"""exp, log and what is made of them, for every path of prediction.

NumPy, SciPy and the C library each have several versions of these, chosen by the processor, that differ in
the last bit; those of the compiled core have one. `exp`, `log`, `log1p` and `log2` are within one unit in
the last place of the true value, the others within three. Nothing warns: log(0) is -inf, log(-1) is NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from metarank import _core

Elementary = Callable[[Any], Any]


def _on_arrays(of_core: Callable[[np.ndarray], np.ndarray], what: str) -> Elementary:
    def function(x: Any) -> Any:
        if type(x) is np.ndarray and x.ndim == 1 and x.dtype == np.float64 and x.flags.c_contiguous:
            return of_core(x)
        x = np.asarray(x)
        values = of_core(np.ascontiguousarray(x, np.float64).ravel()).reshape(x.shape)
        return values.astype(np.float32 if x.dtype == np.float32 else np.float64, copy=False)[()]

    function.__doc__ = f"{what}, elementwise: float32 of float32, else float64; a scalar of a scalar."
    return function


exp: Final = _on_arrays(_core.exp, "e to the power of x")
exp2: Final = _on_arrays(_core.exp2, "2 to the power of x, exactly for integers")
log: Final = _on_arrays(_core.log, "The natural logarithm of x")
log1p: Final = _on_arrays(_core.log1p, "log(1 + x)")
log2: Final = _on_arrays(_core.log2, "The binary logarithm of x")
logistic: Final = _on_arrays(_core.logistic, "1 / (1 + exp(-x))")
softplus: Final = _on_arrays(_core.softplus, "log(1 + exp(x))")
log_odds: Final = _on_arrays(_core.log_odds, "log(x / (1 - x)), infinite at 0 and 1")
