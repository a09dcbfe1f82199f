"""Modules that import torch have examples to run only where it is installed."""

from importlib.util import find_spec

_NEED_TORCH = ("encoders", "fitting", "gradients", "losses", "network", "parallel", "training")

collect_ignore = [] if find_spec("torch") else [f"metarank/text/{name}.py" for name in _NEED_TORCH]
