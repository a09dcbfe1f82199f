"""Answer requests for ranked labels over HTTP, with a page to try the model on."""

from __future__ import annotations

import argparse
import logging
import socket
import sys
from contextlib import closing
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from metarank.apps.cli._common import MODEL_HELP, add_weight_option, check_exists, load_model

if TYPE_CHECKING:
    from metarank.apps.serve.options import Access
    from metarank.apps.serve.reload import Loaded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options; those of limits have the names and defaults of `ServeOptions`."""
    from metarank.apps.serve.options import ServeOptions

    parser.add_argument("model", metavar="DIR", help=MODEL_HELP)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1: this machine alone)"
    )
    parser.add_argument("--port", type=int, default=8000, help="0 for any free one (default 8000)")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a Host that requests may name besides this machine's, as a proxy passes it on, or * for any; "
        "may be repeated; /health and /ready are answered under every name",
    )
    parser.add_argument(
        "--root-path",
        default="",
        metavar="PATH",
        help="path at which a proxy offers the service, such as /labels, whether or not it cuts it off",
    )
    parser.add_argument(
        "--cors",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="origin of pages that may ask, such as https://labels.example, or * for all; may be repeated",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="requests must carry the token in this file, as Authorization: Bearer TOKEN; "
        "/health and /ready need none, and the page asks for it",
    )
    parser.add_argument(
        "--access-log",
        action="store_true",
        help="write a line of JSON for every request to standard output, with its X-Request-Id",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="processes that answer, each within the limits below (default 1); they share the model's memory",
    )
    parser.add_argument(
        "--admin-socket",
        metavar="PATH",
        help="unix socket at which POST /admin/reload loads the model in DIR anew, as SIGHUP does; the one "
        "before answers until that is done, and on if the new one is broken",
    )
    add_weight_option(parser)
    group = parser.add_argument_group("limits")
    for limit in fields(ServeOptions):
        is_time = limit.name.endswith("timeout")
        group.add_argument(
            f"--{limit.name.replace('_', '-')}",
            type=float if is_time else int,
            default=limit.default,
            metavar="SECONDS" if is_time else "N",
            help=f"{limit.metadata['help']} (default {limit.default:{'g' if is_time else 'd'}})",
        )


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank._util.extra import require_extra
    from metarank.apps.serve.options import Access, ServeOptions

    options = ServeOptions(**{field.name: getattr(args, field.name) for field in fields(ServeOptions)})
    access = Access(
        frozenset(args.allow_host),
        _token(args.token_file),
        tuple(args.cors),
        args.root_path,
        args.access_log,
    )
    require_extra("serve", "fastapi", "uvicorn", "prometheus_client", "httptools")
    from metarank.apps.serve.instances import InputReader
    from metarank.apps.serve.processes import check_processes, run_processes
    from metarank.apps.serve.run import listen, run

    check_processes(args.processes)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("metarank.serve").setLevel(logging.INFO)
    with closing(listen(args.host, args.port)) as listener:  # before the model is read, which may take long
        _warn_if_open(listener, access)
    path = Path(args.model).absolute()  # no link resolved: it may lead to another model by the next load
    name = path.resolve().name

    def announce(url: str) -> None:
        # No browser elsewhere can go to such an address: it stands for each that the machine has.
        every = ", all addresses of this machine" if urlsplit(url).hostname in ("0.0.0.0", "::") else ""
        print(f"{name} is served at {url}{every} (Ctrl-C stops)", flush=True)

    at: dict[str, Any] = {"host": args.host, "port": args.port, "access": access, "name": name}
    at |= {"admin_socket": args.admin_socket, "announce": announce}
    load = partial(_load, str(path), args.propensity_weight)
    if args.processes == 1:
        run(load, options, **at)
    else:
        InputReader(load().model, options)  # that all of them can begin is known, in one line if not
        run_processes(load, args.processes, options, **at)


def _warn_if_open(listener: socket.socket, access: Access) -> None:
    """A line on stderr where other machines reach the service and it asks nobody for a token."""
    from metarank.apps.serve.hosts import is_local

    if access.token is None and not is_local(listener):
        print(
            f"metarank: warning: --host {listener.getsockname()[0]} without --token-file: whoever reaches "
            "this machine can ask the model",
            file=sys.stderr,
        )


def _load(path: str, weight: float | None) -> Loaded:
    """The model that is in a folder now, for one thread: the service's own are the parallelism."""
    from metarank.apps.serve.reload import Loaded
    from metarank.persist import read_manifest

    while True:
        digest = read_manifest(path, verify=False)["digest"]
        model = load_model(path, argparse.Namespace(jobs=1, propensity_weight=weight))
        if read_manifest(path, verify=False)["digest"] == digest:  # else it was replaced in between
            return Loaded(model, digest)


def _token(path: str | None) -> str | None:
    if path is None:
        return None
    check_exists(path)
    try:
        token = Path(path).read_text(encoding="ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not token:
        raise ValueError(f"--token-file must hold a token of ASCII characters: {path}")
    return token
