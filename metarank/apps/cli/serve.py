"""Answer requests for ranked labels over HTTP, with a page to try the model on."""

from __future__ import annotations

import argparse
import logging
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from metarank.apps.cli._common import add_weight_option, load_model

HELP = "serve a model over HTTP, with a page to try it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options; those of limits have the names and defaults of `ServeOptions`."""
    from metarank.apps.serve.options import ServeOptions

    default = ServeOptions()
    parser.add_argument("model", metavar="DIR")
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen at (default 127.0.0.1: this machine alone)"
    )
    parser.add_argument("--port", type=int, default=8000, help="0 for any free one (default 8000)")
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a Host that requests may name besides this machine's, as a proxy passes it on; may be repeated",
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=1,
        metavar="N",
        help="processes that answer, each within the limits below (default 1); they share the model's memory",
    )
    add_weight_option(parser)
    group = parser.add_argument_group("limits")
    for name, meaning in (
        ("threads", "threads that ask the model"),
        ("queue", "requests that may wait; one more gets 429"),
        ("queue-pairs", "pairs of all large requests not answered yet; more gets 429"),
        ("queue-bytes", "bytes of requests and replies, less the first 64 KiB of each; more gets 429"),
        ("step-pairs", "pairs compared before a large request lets others have a turn"),
        (
            "connections",
            "requests on their way, 503 for more; and open connections, the longest idle goes",
        ),
        ("max-pairs", "pairs of a request: its instances by the labels compared for each"),
        ("max-head", "bytes of a request line and headers; more gets 431"),
        ("max-batch", "instances of a request"),
        ("max-body", "bytes of a request"),
        ("max-text", "characters of a text"),
        ("max-k", "labels of an instance"),
        ("max-explain", "labels explained by a request"),
    ):
        value = getattr(default, name.replace("-", "_"))
        group.add_argument(
            f"--{name}", type=int, default=value, metavar="N", help=f"{meaning} (default {value})"
        )
    for name, meaning in (
        ("timeout", "time for an answer, else 503"),
        ("head-timeout", "time for a request line and headers, else the connection is closed"),
        ("idle-timeout", "time a connection is kept after a reply, and for a client to take a MiB of one"),
        ("stop-timeout", "time for requests in flight after SIGTERM or Ctrl-C, then 503"),
    ):
        value = getattr(default, name.replace("-", "_"))
        group.add_argument(
            f"--{name}", type=float, default=value, metavar="SECONDS", help=f"{meaning} (default {value:g})"
        )


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank._util.extra import require_extra
    from metarank.apps.serve.options import ServeOptions

    options = ServeOptions(**{field.name: getattr(args, field.name) for field in fields(ServeOptions)})
    require_extra("serve", "fastapi", "uvicorn", "prometheus_client", "httptools")
    from metarank.apps.serve.processes import check_processes, run_processes
    from metarank.apps.serve.run import listen, run

    check_processes(args.processes)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    listen(args.host, args.port).close()  # before the model is read, which may take long
    args.jobs = 1  # the service's own threads are the parallelism
    model = load_model(args.model, args)
    name = Path(args.model).resolve().name

    def announce(url: str) -> None:
        print(f"{name} is served at {url} (Ctrl-C stops)", flush=True)

    at: dict[str, Any] = {"host": args.host, "port": args.port, "allowed_hosts": args.allow_host}
    at |= {"name": name, "announce": announce}
    if args.processes == 1:
        run(model, options, **at)
    else:
        del model  # each process has its own; that it can be read is known
        own = argparse.Namespace(jobs=1, propensity_weight=args.propensity_weight)
        load = partial(load_model, str(Path(args.model).resolve()), own)
        run_processes(load, args.processes, options, **at)
