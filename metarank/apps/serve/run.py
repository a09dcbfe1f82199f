"""`run`: the service in one process or several, by uvicorn."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

import uvicorn
from fastapi import FastAPI

from metarank.apps.serve.app import create_app
from metarank.apps.serve.metrics import SHARED

# Where the processes of uvicorn find the arguments of `create_app`, as JSON.
_SETTINGS = "METARANK_SERVE"
# Seconds after which a thread lets others run. By Python's default, 0.005, the event loop would wait so long
# for each of its turns while a thread describes pairs.
_SWITCH = 0.0005
# Seconds for a process to show uvicorn that it lives: on a busy machine its start takes longer than the 5 s
# after which uvicorn would end it.
_HEALTHCHECK = 60


def run(settings: dict[str, Any], *, workers: int = 1, **options: Any) -> None:
    """Serve a model until SIGTERM or Ctrl-C.

    Parameters
    ----------
    settings : dict
        Arguments of `create_app`, all of them JSON; `model` is the path of a folder.
    workers : int
        Processes that answer. Each holds the model, whose files they share, and watches its folder.
    **options
        Of `uvicorn.run`.

    Raises
    ------
    ValueError, TypeError, OSError
        If the folder has no model that can be served, or an argument breaks its rule.
    """
    options |= {"timeout_worker_healthcheck": _HEALTHCHECK, "server_header": False, "ws": "none"}
    app = create_app(**settings)  # which fails here, in one line, before there are processes
    if workers == 1:
        sys.setswitchinterval(_SWITCH)
        uvicorn.run(app, **options)
        return
    del app  # each process has its own
    os.environ[_SETTINGS] = json.dumps(settings)
    with tempfile.TemporaryDirectory(prefix="metarank-metrics-") as shared:
        os.environ[SHARED] = shared
        uvicorn.run(f"{__name__}:app_of_process", factory=True, workers=workers, **options)


def app_of_process() -> FastAPI:
    """The application of one of several processes."""
    sys.setswitchinterval(_SWITCH)
    return create_app(**json.loads(os.environ[_SETTINGS]))
