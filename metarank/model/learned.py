"""`Learned`: the attributes that `MetaRanker` has after a fit, with their types."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from metarank.model.fitted import FittedModel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from metarank.data.encoder import InputEncoder
    from metarank.metrics.resampling import Interval
    from metarank.ranker import Ranker
    from metarank.scorers.base import LabelScorer
    from metarank.scorers.source import Source
    from metarank.thresholds import LearnedCuts
    from metarank.types.label_descriptions import LabelDescriptions
    from metarank.types.label_table import LabelTable
    from metarank.types.texts import PackedStrings

# What a fitted model can be asked for, under these names with an underscore behind them.
LEARNED = {
    *(field.name for field in fields(FittedModel)),
    *("label_table", "n_features_in", "scorers", "shortlisters"),
}


class Learned:
    """What a fit learned: that of `fitted_` under the name without the underscore."""

    if TYPE_CHECKING:
        fitted_: FittedModel
        n_features_in_: int
        n_labels_: int
        n_rows_: int
        label_names_: list[str] | None
        label_separator_: str | None
        label_table_: LabelTable
        labels_: LabelDescriptions | None
        removed_: NDArray[np.int32]
        sources_: list[Source]
        scorers_: list[LabelScorer]
        shortlisters_: list[LabelScorer]
        feature_columns_: list[str]
        feature_importances_: NDArray[np.float64]
        held_out_quality_: dict[str, Interval]
        choices_: list[str]
        ranker_: Ranker
        thresholds_: LearnedCuts
        inv_propensity_: NDArray[np.float64]
        random_state_: int
        propensity_weight_: float
        objective_names_: list[str] | None
        encoder_: InputEncoder
        row_names_: PackedStrings | None
        text_columns_: list[str] | None
        prior_: NDArray[np.float32]
    else:

        def __getattr__(self, name: str) -> Any:
            if not name.endswith("_") or name[:-1] not in LEARNED:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if "fitted_" not in vars(self):
                raise AttributeError(f"this {type(self).__name__} has no {name}: fit it first")
            return getattr(self.fitted_, name[:-1])
