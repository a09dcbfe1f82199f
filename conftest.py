"""Examples that need an extra are run only where it is installed."""

from importlib.util import find_spec

_NEED_TEXT = ("embedder", "network", "subwords", "training")

_NEED_SERVE = ("answers", "app", "instances", "metrics", "reload", "run", "schema")

collect_ignore = [] if find_spec("torch") else [f"metarank/text/{name}.py" for name in _NEED_TEXT]
if not find_spec("annif"):
    collect_ignore += ["metarank/apps/annif/backend.py"]
if not find_spec("fastapi"):
    collect_ignore += [f"metarank/apps/serve/{name}.py" for name in _NEED_SERVE]
