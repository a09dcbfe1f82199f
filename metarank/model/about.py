"""What a fitted model says of itself, for `metarank inspect`, reports and model cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from metarank.data.block_encoder import needed_blocks
from metarank.model.answering.measure import training_counts
from metarank.model.fitted import FittedModel


def facts_of(model: FittedModel, settings: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    """Facts by name, each a value or a list; `settings` are those of the fit, `usual` the defaults."""
    changed = [
        f"{name}={value!r:.80}"
        for name, value in settings.items()
        if name not in ("random_state", "n_jobs") and repr(value) != repr(usual[name])
    ]
    facts = {
        "features": model.n_features_in,
        "labels": model.n_labels - len(model.removed),
        "removed labels": len(model.removed) or None,
        "training rows": model.n_rows,
        "blocks": [line.removeprefix("block ") for line in model.choices if line.startswith("block ")],
        "feature matrix": model.encoder.layout,
        "label table": None if model.labels is None else repr(model.labels).partition("(")[2][:-1],
        "shortlisters": ", ".join(s.shown_as for s in model.shortlisters) or "none: all labels",
        "sources": ", ".join(s.shown_as for s in model.scorers),
        "meta-features": len(model.feature_columns),
        "ranker": model.ranker.summary(),
        "thresholds": model.thresholds.summary(),
        "propensity weight": f"{model.propensity_weight:g}",
        "settings": (", ".join(changed) + "; others: default") if changed else "default",
        "seed": model.random_state,
    }
    return {name: value for name, value in facts.items() if value not in (None, [])}


def card_of(model: FittedModel) -> dict[str, Any]:
    """What the template of cards needs beside the facts: nothing is measured."""
    counts = training_counts(model)
    counts = None if counts is None else np.delete(counts, model.removed)
    return {"model": model, "counts": counts, "blocks": needed_blocks(model.encoder)}
