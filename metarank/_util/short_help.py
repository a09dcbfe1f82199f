"""Help on estimators that tells of what they do, not of scikit-learn's metadata routing or of saving."""

from __future__ import annotations

import re
from abc import ABCMeta
from collections.abc import Iterable

# Metadata routing; how objects are saved and restored, which `save` and `load` do.
_HIDDEN = re.compile(
    r"set_\w+_request|get_metadata_routing|__init_subclass__|__[gs]etstate__|__sklearn_\w+__|"
    r"__dataclass_\w+__|__match_args__|__annotations__|saved|get_state|from_state|named_sizes"
)


class ShortHelp(ABCMeta):
    """The kind of classes of which `dir`, and with it `help`, does not list the methods of metadata routing
    and of saving.

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
        # The parameters' defaults are in the signature.
        hidden = getattr(cls, "__dataclass_fields__", {})
        return [name for name in super().__dir__() if not _HIDDEN.fullmatch(name) and name not in hidden]
