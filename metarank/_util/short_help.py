"""Help on estimators that tells of what they do, and not of the set-up of scikit-learn's metadata routing."""

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Iterable

_ROUTING = re.compile(r"set_\w+_request|get_metadata_routing")


class ShortHelp(ABCMeta):
    """The kind of classes of which `dir`, and with it `help`, does not list the methods of metadata routing.

    scikit-learn gives each estimator `set_fit_request`, `set_predict_request` and so on, with a page of text
    each. They are there as ever, also for those who call them.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> class Mean(BaseEstimator, metaclass=ShortHelp):
    ...     def fit(self, X, y=None, sample_weight=None): ...
    >>> hasattr(Mean, "set_fit_request"), "set_fit_request" in dir(Mean), "fit" in dir(Mean)
    (True, False, True)
    """

    def __dir__(cls) -> Iterable[str]:
        return [name for name in super().__dir__() if not _ROUTING.fullmatch(name)]
