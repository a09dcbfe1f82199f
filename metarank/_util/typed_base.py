"""scikit-learn's base of estimators, with types: it has none, and so what derives from it would have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:

    class BaseEstimator:
        """What scorers and rankers are to type checkers: they have parameters, and nothing unknown.

        An estimator that users hand to scikit-learn's own tools derives from its class for type checkers too.
        """

        n_features_in_: int

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...

        def set_params(self, **params: Any) -> Self: ...

        def __sklearn_tags__(self) -> Any: ...

else:
    from sklearn.base import BaseEstimator as BaseEstimator
