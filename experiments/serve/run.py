"""What rate of requests does `metarank serve` hold, with what latency, and where does their time go?

python experiments/serve/run.py [--rates 100,300,500] [--seconds 20] [--servers 1x1,1x2,2x1] [--model DIR]

Trains on pydocs, starts the server, loads it from a second process (open_load.py) and writes results.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import serve_tables
from watched_server import Server, serving

from metarank import MetaRanker, data, load

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

HERE = Path(__file__).parent
# Labels of a request.
K = 10


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rates",
        default="100,200,300,400,500,500,500,600,800",
        help="requests a second; one that is there several times is told several times",
    )
    parser.add_argument("--seconds", type=float, default=20, help="of each rate")
    parser.add_argument("--servers", default="1x1,1x2,2x1", help="processes x threads of each")
    parser.add_argument("--queue", type=int, default=128)
    parser.add_argument("--connections", type=int, default=256, help="of the generator")
    parser.add_argument("--even", action="store_true", help="requests at even times (default: Poisson)")
    parser.add_argument("--model", type=Path, help="a model trained on pydocs before")
    add_options(parser, HERE / "results.md")
    options = parser.parse_args(arguments)
    whole = WholePage(options, parser, ("rates", "seconds", "servers"))
    rates = [float(rate) for rate in options.rates.split(",")]
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        path = options.model or Path(folder) / "pydocs"
        if options.model is None:
            print("training on pydocs", file=sys.stderr)
            MetaRanker().fit(data.load_pydocs("train")).save(path)
        queries = Path(folder) / "queries.json"
        queries.write_text(json.dumps(expected(path)))
        for kind in options.servers.split(","):
            processes, threads = kind.split("x")
            settings = ["--processes", processes, "--threads", threads, "--queue", str(options.queue)]
            with serving(path, *settings) as server:
                ask(server, queries, options, rate=50, seconds=2)  # what is slow the first time
                for rate in rates:
                    print(f"{kind}, {rate:g} requests a second", file=sys.stderr)
                    runs.append({"server": kind, **watched(server, queries, options, rate)})
    whole.write(serve_tables.write(runs, options))
    return 0


def expected(path: Path) -> list[tuple[str, str]]:
    """The test texts of pydocs as requests, with the replies that `MetaRanker.rank` gives."""
    model = load(path)
    texts = list(data.load_pydocs("test").texts)
    names, ranking = model.label_names_, model.rank(texts, k=K)
    return [
        (
            json.dumps({"instance": text, "k": K}),
            json.dumps(
                {
                    "rankings": [[{"label": v, "name": names[v], "score": s} for v, s in row]],
                    "without_evidence": [bool(blank)],
                }
            ),
        )
        for text, row, blank in zip(texts, ranking, ranking.without_evidence)
    ]


def ask(server: Server, queries: Path, options: argparse.Namespace, *, rate: float, seconds: float) -> dict:
    """What the generator, a process of its own, saw."""
    command = [sys.executable, str(HERE / "open_load.py"), server.url, str(queries), "--rate", str(rate)]
    command += ["--seconds", str(seconds), "--connections", str(options.connections)]
    if options.even:
        command.append("--even")
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def watched(server: Server, queries: Path, options: argparse.Namespace, rate: float) -> dict:
    """What the generator saw, and what the server did meanwhile."""
    cpu, counts = server.cpu(), server.counts()
    seen = ask(server, queries, options, rate=rate, seconds=options.seconds)
    used = {name: value - cpu[name] for name, value in server.cpu().items()}
    done = {name: value - counts.get(name, 0) for name, value in server.counts().items()}
    return {**seen, "rate": rate, "server_cpu": used, "counts": done, "memory": server.memory()}


if __name__ == "__main__":
    sys.exit(main())
