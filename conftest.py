"""Examples that need the extra `text` are run only where torch is installed."""

from importlib.util import find_spec

_NEED_EXTRA = (
    "checkpoint",
    "embedder",
    "encoders",
    "fitting",
    "gradients",
    "losses",
    "network",
    "parallel",
    "subwords",
    "training",
)

collect_ignore = [] if find_spec("torch") else [f"metarank/text/{name}.py" for name in _NEED_EXTRA]
