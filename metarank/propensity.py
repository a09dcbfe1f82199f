"""The public door to propensities of labels; see `metarank.metrics.propensity`."""

from metarank.metrics.propensity import *  # noqa: F403
from metarank.metrics.propensity import __all__ as __all__
