"""How far is a row from what this processor and this memory can do?

python experiments/latency/floor.py [--sets pydocs]

Needs valgrind, under which the instructions and the cache lines of answers are counted: exactly, whatever the
machine does besides. The times beside them are measured without it, by the same calls.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import scipy.sparse as sp
from borrowed import (
    REFERENCE,
    THREAD_VARIABLES,
    Prepared,
    WholePage,
    add_options,
    available,
    bullets,
    cpu_model,
    digest_of_sources,
    number,
    version_of,
)

import metarank
from metarank import MetaRanker
from metarank.data import Dataset

_HERE = Path(__file__).parent
SETS = (
    "LLMs4Subjects-dev-en",
    "CiteULike-t-tags",
    "LastFM-ArtistTags",
    "pydocs",
    "Wikispeedia-Links",
    REFERENCE,
)
NAMELESS = (REFERENCE,)
# Rows to warm the caches, counted rows one by one, counted rows of a batch, and repeats of what is timed.
WARM, SINGLES, BATCH, REPEATS = 20, 50, 200, 15
K = 10
LINE = 64  # bytes
BYTES = 1 << 29  # of the memory that is read to see how fast that is: more than any cache has
LOOPS = 20_000_000
Row = list[str]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS), help=f"among {', '.join(SETS)}")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="-1: any")
    parser.add_argument("--cache", type=Path, default=_HERE / "cache", help="folder of the sets")
    add_options(parser, _HERE / "floor.md")
    parser.add_argument("--answer", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.answer is not None:
        answer(*options.answer)
        return 0
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    whole = WholePage(options, parser, ("sets",))
    if options.core >= 0:
        os.sched_setaffinity(0, [options.core])
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    bounds = Bounds()
    rows, checksums = [], {}
    for dataset in available(options.sets.split(","), options.cache):
        checksums[dataset.name] = dataset.checksum
        for names in (False,) if dataset.name in NAMELESS else (False, True):
            print(f"{dataset.name}, names: {names}", file=sys.stderr)
            rows += measured(dataset, names, bounds)
    whole.write(page(rows, bounds, checksums))
    return 0


class Bounds:
    """What this processor and this memory do at best, in one thread."""

    def __init__(self) -> None:
        counted = counts(["-c", _LOOP.format(control=_CONTROL, loops=LOOPS // 100)])[0]
        seconds = least_seconds(_loop)
        self.instructions_per_ns = counted["Ir"] * 100 / seconds / 1e9
        memory = np.ones(BYTES // 8)
        self.bytes_per_ns = BYTES / least_seconds(memory.sum) / 1e9


def _loop() -> None:
    for _ in range(LOOPS):
        pass


# A loop of the interpreter waits for nothing: it is the busiest thing that is the same on every machine.
_CONTROL = """
import os, subprocess
def control(*options):
    subprocess.run(["callgrind_control", *options, str(os.getpid())], stdout=subprocess.DEVNULL, check=True)
"""
_LOOP = """{control}
def loop(n):
    for _ in range(n):
        pass
loop(1000)
control("-i", "on")
control("-z")
loop({loops})
control("-d")
os._exit(0)
"""


def least_seconds(task: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        task()
        times.append(time.perf_counter() - start)
    return min(times)


def counts(arguments: list[str]) -> list[dict[str, int]]:
    """What callgrind counted up to each of its dumps, by the names of its events."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--cache-sim=yes", "--instr-atstart=no"]
        command += [f"--callgrind-out-file={folder}/out", sys.executable, *arguments]
        subprocess.run(command, check=True, capture_output=True)
        found = []
        while (dump := Path(folder) / f"out.{len(found) + 1}").is_file():
            lines = dump.read_text().splitlines()
            events = next(line for line in lines if line.startswith("events:")).split()[1:]
            totals = next(line for line in lines if line.startswith("totals:")).split()[1:]
            found.append(dict(zip(events, map(int, totals))))
        return found


def measured(dataset: Prepared, names: bool, bounds: Bounds) -> list[Row]:
    """A row of the table for single rows, and one for rows of a batch."""
    known = json.loads((dataset.folder / "names.json").read_text())
    train = Dataset(dataset.matrix("X"), dataset.matrix("Y"), **known)
    exclude = dataset.matrix("exclude") if dataset.has("exclude") else None
    model = MetaRanker(n_jobs=1, **({} if names else {"names": False})).fit(train, exclude=exclude)
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        sp.save_npz(f"{folder}/rows.npz", dataset.matrix("X_test")[: WARM + SINGLES + BATCH])
        asked = [str(Path(__file__)), "--answer", f"{folder}/model", f"{folder}/rows.npz"]
        timed = subprocess.run(
            [sys.executable, *asked, "timed"], check=True, stdout=subprocess.PIPE, text=True
        )
        milliseconds = json.loads(timed.stdout)
        counted = counts([*asked, "counted"])
    title = f"{dataset.name}, {'with' if names else 'without'} names"
    return [
        row_of(f"{title}, {kind}", ms, {event: n / n_rows for event, n in of.items()}, bounds)
        for kind, ms, of, n_rows in zip(("single", "batch"), milliseconds, counted, (SINGLES, BATCH))
    ]


def row_of(title: str, ms: float, of: dict[str, float], bounds: Bounds) -> Row:
    instructions, moved = of["Ir"], LINE * (of["D1mr"] + of["D1mw"])
    fetched = LINE * (of["DLmr"] + of["DLmw"])
    floor = max(instructions / bounds.instructions_per_ns, fetched / bounds.bytes_per_ns) / 1e6
    figures = (
        ms,
        instructions / 1e6,
        (of["Dr"] + of["Dw"]) / 1e6,
        moved / 2**10,
        fetched / 2**10,
        instructions / ms / 1e6,
        floor,
        ms / floor,
    )
    return [title, *map(number, figures)]


def answer(model: str, rows: str, how: str) -> None:
    """Rank rows one by one, then in a batch: timed, in milliseconds a row, or to be counted."""
    ranker, X = metarank.load(model), sp.load_npz(rows).tocsr()
    warm, singles, batch = X[:WARM], X[WARM : WARM + SINGLES], X[WARM + SINGLES :]
    one_by_one = [singles[i] for i in range(singles.shape[0])]

    def single() -> None:
        for row in one_by_one:
            ranker.rank(row, k=K)

    def whole() -> None:
        ranker.rank(batch, k=K)

    ranker.rank(warm, k=K)
    single()
    if how == "timed":
        per_row = [1e3 * least_seconds(task) / n for task, n in ((single, SINGLES), (whole, batch.shape[0]))]
        print(json.dumps(per_row))
        return
    scope: dict = {}
    exec(_CONTROL, scope)
    control = scope["control"]
    control("-i", "on")
    for task in (single, whole):
        ranker.rank(warm, k=K)
        control("-z")
        task()
        control("-d")
    os._exit(0)  # what is counted is done


def page(rows: list[Row], bounds: Bounds, checksums: dict[str, str]) -> str:
    head = [
        "set",
        "ms a row",
        "10⁶ instructions",
        "10⁶ loads and stores",
        "KiB into the first cache",
        "KiB from memory",
        "instructions a ns",
        "floor ms",
        "of the floor",
    ]
    table = [
        head,
        ["---", *["---:"] * (len(head) - 1)],
        *rows,
    ]
    about = [
        "`python experiments/latency/floor.py`",
        f"{cpu_model()}, {os.cpu_count()} cores, Python {platform.python_version()}, one thread",
        f"metarank {version_of('metarank')}, sha256 of its sources: {digest_of_sources()}",
        *(f"sha256 of {name}: {checksum}" for name, checksum in checksums.items()),
    ]
    return (
        "# What a row could cost at least\n\n"
        f"Lists of {K} labels by models of default settings: {SINGLES} rows one by one, and {BATCH} in one "
        "call. Instructions, loads, stores and cache lines are counted by callgrind, which has this "
        "machine's caches and no AVX-512; nothing else on the machine has an influence on them. A vector "
        f"instruction counts once. *ms a row* is the shortest of {REPEATS} repeats, without callgrind. *KiB "
        f"into the first cache*: {LINE}-byte lines that were not there, that is, what a row touches of the "
        "model and of its own scratch memory. *floor*: the longer of two times, that of as many "
        f"instructions at {number(bounds.instructions_per_ns)} a nanosecond, the rate of an empty loop, and "
        f"that of as many bytes from memory at {number(bounds.bytes_per_ns)} a nanosecond, the rate of a "
        "plain sum. Nothing with a load or a branch that cannot be foreseen runs at that rate.\n\n"
        + "\n".join(f"| {' | '.join(row)} |" for row in table)
        + f"\n\n{bullets(about)}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
