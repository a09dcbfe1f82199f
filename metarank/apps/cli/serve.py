"""Serve a model over HTTP, with a page to try it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from metarank.apps.cli._options import add_options, positive

_LOCAL = ("127.0.0.1", "localhost", "::1")

_OPTIONS = """
model DIR          folder of the model; it is reloaded when it changes
--propensity-weight
--token-file FILE  requests must send the token in this file, as Authorization: Bearer TOKEN; /health and
                   /ready need none, and the page asks for it
--cors ORIGIN ...  origin of pages that may call, such as https://labels.example, or * (all); may be repeated
--threads N        threads of a process that run the model (default 2)
--max-body N       greatest size of a request in bytes (default 1048576)
[options of uvicorn]
--host HOST                    address to listen at (default 127.0.0.1: this machine only)
--port PORT                    0 for any free one (default 8000)
--root-path PATH               path of the service behind a proxy that strips it
--access-log                   write a line for every request
--workers N                    processes that answer; they share the model's memory (default 1)
--limit-concurrency N          connections and requests at a time; more get 503 (default 512)
--timeout-keep-alive N         seconds that a connection is kept after a reply (default 15)
--timeout-graceful-shutdown N  seconds for requests in flight after SIGTERM or Ctrl-C (default 10)
"""
_DEFAULTS: dict[str, Any] = {"cors": {"default": []}, "threads": 2, "max_body": 1 << 20}
# Those that are handed on as they are.
_OF_UVICORN: dict[str, Any] = {
    "host": "127.0.0.1",
    "port": 8000,
    "root_path": "",
    "access_log": {},
    "workers": {"type": positive, "default": 1},
    "limit_concurrency": {"type": positive, "default": 512},
    "timeout_keep_alive": {"type": positive, "default": 15},
    "timeout_graceful_shutdown": {"type": positive, "default": 10},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the service, and those that are handed on to uvicorn under their names there."""
    add_options(parser, _OPTIONS, **_DEFAULTS, **_OF_UVICORN)


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank._util.extra import require_extra
    from metarank._util.parameters import check_integer

    require_extra("serve", "fastapi", "uvicorn", "prometheus_client")
    from metarank.apps.serve.run import run

    check_integer("port", args.port, 0, 65535)
    token = _token(args.token_file)
    if token is None and args.host not in _LOCAL:
        print(
            f"metarank: warning: --host {args.host} without --token-file: anyone who reaches this machine "
            "can use the model",
            file=sys.stderr,
        )
    settings = {
        "model": str(Path(args.model).absolute()),  # no link resolved: it may lead to another model later
        "token": token,
        "origins": args.cors,
        "threads": args.threads,
        "max_body": args.max_body,
        "propensity_weight": args.propensity_weight,
    }
    run(settings, **{name: getattr(args, name) for name in _OF_UVICORN})


def _token(path: str | None) -> str | None:
    """The token in a file, valid in a header."""
    if path is None:
        return None
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable() or " " in token:
        raise ValueError(f"--token-file must hold a token of ASCII characters without blanks: {path}")
    return token
