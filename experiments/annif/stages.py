"""Steps that are kept: one is taken again only if its command, or what it reads or follows, has changed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pages import log

ENVIRONMENT = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "RAYON")} | {
    "TF_NUM_INTRAOP_THREADS": "1",
    "TF_NUM_INTEROP_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "OMP_WAIT_POLICY": "passive",
    "PYTHONHASHSEED": "0",
    "ANNIF_CONFIG": "annif.default_config.Config",
}


@dataclass(frozen=True)
class Done:
    """What a step found.

    `cpu` is seconds of its process and of those that it started, `memory` the peak of its process in MiB,
    `printed` the end of what it printed, and `answer` its last line, where that is JSON.
    """

    digest: str
    cpu: float
    memory: float
    printed: str
    answer: dict[str, Any] = field(default_factory=dict)


class Only:
    """Whether nothing is run, and the steps that were kept although they would be taken again."""

    kept = False
    older: ClassVar[list[str]] = []


class Failed(Exception):
    """A step ended with an error."""


def kept(
    path: Path,
    command: list[str],
    *,
    reads: list[str],
    environment: dict[str, str] | None = None,
    output: Path | None = None,
) -> Done:
    """Run a command on one core with one thread, unless `path` says that the same was run before.

    Parameters
    ----------
    path : where the result is kept (JSON); what the process logs goes beside it.
    command : of the process. Folders may differ between runs that are the same: file names alone count.
    reads : digests of what the process reads.
    environment : variables of the process.
    output : file or folder that has to be there for a kept result to count.

    Raises
    ------
    Failed
        With the last lines that the process wrote.
    """
    names = [Path(part).name if os.sep in part else part for part in command]
    digest = hashlib.sha256(json.dumps([names, reads]).encode()).hexdigest()
    if path.exists() and (output is None or output.exists()):
        found = Done(**json.loads(path.read_text()))
        if found.digest == digest:
            return found
        if Only.kept:
            Only.older.append("/".join((*path.parts[-3:-1], path.stem)))
            return found
    if Only.kept:
        raise Failed(f"{path.stem} is not kept")
    path.parent.mkdir(parents=True, exist_ok=True)
    core = max(os.sched_getaffinity(0))
    started = time.monotonic()
    logged, printed = path.with_suffix(".log"), path.with_suffix(".out")
    with open(logged, "w") as errors, open(printed, "w") as out:
        process = subprocess.Popen(
            command,
            env={**os.environ, **ENVIRONMENT, **(environment or {})},
            stdout=out,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: os.sched_setaffinity(0, {core}),
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    text = printed.read_text()
    if process.returncode != 0:
        last = "\n".join((text + logged.read_text()).splitlines()[-12:])
        raise Failed(f"{path.stem} ended with {process.returncode}:\n{last}")
    lines = text.strip().splitlines()
    answer = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
    cpu = usage.ru_utime + usage.ru_stime
    found = Done(digest, cpu, usage.ru_maxrss / 1024, text[-4000:], answer)
    path.write_text(json.dumps(found.__dict__, indent=1))
    log(f"{path.parent.name}/{path.stem}: {cpu:.0f} CPU s, {time.monotonic() - started:.0f} s")
    return found
