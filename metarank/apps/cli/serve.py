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
    from metarank.apps.serve.options import ServeOptions

    options = ServeOptions(**{field.name: getattr(args, field.name) for field in fields(ServeOptions)})
    require_extra("serve", "fastapi", "uvicorn", "prometheus_client", "httptools")
    from metarank.apps.serve.instances import InputReader
    from metarank.apps.serve.processes import check_processes, run_processes
    from metarank.apps.serve.run import listen, run

    check_processes(args.processes)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.WARNING)
    listen(args.host, args.port).close()  # before the model is read, which may take long
    args.jobs = 1  # the service's own threads are the parallelism
    model = load_model(args.model, args)
    InputReader(model, options)  # refuses a model whose rows no request can hold
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
