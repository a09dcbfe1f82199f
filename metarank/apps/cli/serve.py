"""Answer requests for ranked labels over HTTP, with a page to try the model on."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from metarank.apps.cli._options import OPTIONS, add_options, positive

_LOCAL = ("127.0.0.1", "localhost", "::1")
# Handed on as they are.
_OF_UVICORN = ("workers", "limit_concurrency", "timeout_keep_alive", "timeout_graceful_shutdown",
               "host", "port", "root_path", "access_log")  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of the service, and those that are handed on to uvicorn under their names there."""
    add_options(parser, "model", help=f"{OPTIONS['model']['help']}; another that is put there is taken up")
    add_options(parser, "--propensity-weight")
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="requests must carry the token in this file, as Authorization: Bearer TOKEN; "
        "/health and /ready need none, and the page asks for it",
    )
    parser.add_argument(
        "--cors",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="origin of pages that may ask, such as https://labels.example, or * for all; may be repeated",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=2,
        metavar="N",
        help="threads of a process that ask the model (default 2)",
    )
    parser.add_argument(
        "--max-body", type=int, default=1 << 20, metavar="N", help="bytes of a request (default 1048576)"
    )
    group = parser.add_argument_group("options of uvicorn")
    group.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1: this machine alone)"
    )
    group.add_argument("--port", type=int, default=8000, help="0 for any free one (default 8000)")
    group.add_argument(
        "--root-path",
        default="",
        metavar="PATH",
        help="path at which a proxy offers the service, which it cuts off",
    )
    group.add_argument("--access-log", action="store_true", help="write a line for every request")
    for name, default, help in (
        ("workers", 1, "processes that answer; they share the model's memory"),
        ("limit-concurrency", 512, "connections and requests at a time; more get 503"),
        ("timeout-keep-alive", 15, "seconds that a connection is kept after a reply"),
        ("timeout-graceful-shutdown", 10, "seconds for requests in flight after SIGTERM or Ctrl-C"),
    ):
        group.add_argument(
            f"--{name}", type=positive, default=default, metavar="N", help=f"{help} (default {default})"
        )


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
            f"metarank: warning: --host {args.host} without --token-file: whoever reaches this machine "
            "can ask the model",
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
    """The token in a file, which a header can carry."""
    if path is None:
        return None
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isprintable() or " " in token:
        raise ValueError(f"--token-file must hold a token of ASCII characters without blanks: {path}")
    return token
