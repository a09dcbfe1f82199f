"""The cluster that is worked on: its client, what its workers see, and their threads."""

from __future__ import annotations

import errno
import logging
import os
import re
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from metarank._util.threads import available_cores, resolve_n_jobs

if TYPE_CHECKING:
    from distributed import Client

# What is sent along with the first of many tasks is part of the graph, and no mistake.
QUIET: dict[str, Any] = {"distributed.admin.large-graph-warning-threshold": "1 PB"}
_ADDRESS = re.compile(
    r"(?:(?:tcp|tls|ws|wss|ucx)://)?(?:\[[0-9A-Fa-f:.%]+\]|[\w.-]+):(?P<port>\d{1,5})/?|inproc://[\w.:/-]+"
)


def check_client(client: Any) -> Client:
    """The client to work with.

    Raises
    ------
    TypeError, ValueError
        If it is no client, there is none, it is closed, or its cluster has no worker.
    """
    from distributed import Client, get_client

    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "client must be a distributed.Client, and none is in use: make one first"
            ) from None
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client or None, got {client!r:.80}")
    if client.asynchronous:
        raise ValueError("client must be a synchronous one, got one with asynchronous=True")
    if client.status != "running":
        raise ValueError(f"client must be connected to a scheduler, got one that is {client.status!r}")
    return client


def check_address(address: Any, parameter: str = "address") -> str:
    """The address of a scheduler, if it has the form of one; no name is looked up.

    Raises
    ------
    ValueError
        If it is malformed, or of a protocol that Dask does not have; `parameter` is named.

    Examples
    --------
    >>> check_address("tcp://10.0.0.1:8786")
    'tcp://10.0.0.1:8786'
    >>> check_address("nonsense")
    Traceback (most recent call last):
    ValueError: address must be an address such as tcp://host:8786, got 'nonsense'
    """
    found = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if found is None or int(found["port"] or 0) > 65535:
        raise ValueError(f"{parameter} must be an address such as tcp://host:8786, got {address!r:.200}")
    return str(address)


@contextmanager
def connected(
    address: str | None = None, *, n_workers: int | None = None, n_jobs: int | None = None
) -> Iterator[Client]:
    """A client of the scheduler at `address`, or of worker processes on this machine, which end with it.

    Ctrl-C is heard while they work, not in the seconds in which they start and end; then it is raised late.

    Parameters
    ----------
    address : str, optional
    n_workers : int, optional
        Without an address: so many processes, which share the cores that this process may use, or have
        `n_jobs` threads each.

    Raises
    ------
    OSError
        If there is no scheduler at the address.
    ValueError
        If the address is malformed, or the cluster has no worker.

    Examples
    --------
    >>> with connected(n_workers=1, n_jobs=1) as client:
    ...     client.submit(len, "abc").result()
    3
    """
    from distributed import Client

    if address is None:
        with _local_client(n_workers or 1, n_jobs) as client:
            yield client
        return
    check_address(address)
    try:
        client = Client(address, timeout="20s", set_as_default=False)  # one that fails is nobody's default
    except OSError as error:
        raise ConnectionError(errno.ECONNREFUSED, f"no Dask scheduler answers: {error}", address) from None
    with client, client.as_current():
        if not client.nthreads():
            raise ValueError(f"the cluster at {address} has no worker")
        yield client


@contextmanager
def _local_client(n_workers: int, n_jobs: int | None) -> Iterator[Client]:
    """A client of new worker processes. Cut off by Ctrl-C, they are closed without a word."""
    from distributed import Client, LocalCluster

    from metarank.distributed.ending import QuietEnd, quiet_end

    threads = max(1, available_cores() // n_workers) if n_jobs in (None, -1) else resolve_n_jobs(n_jobs)
    begun: list[Any] = []

    def close() -> None:
        Path(flag).unlink(missing_ok=True)
        with _interrupts_later():
            while begun:
                begun.pop().close()

    with quiet_end() as flag:
        try:
            with _interrupts_later():
                begun.append(
                    LocalCluster(
                        n_workers=n_workers,
                        threads_per_worker=threads,
                        dashboard_address=":0",
                        silence_logs=logging.ERROR,
                    )
                )
                client = Client(begun[0])
                begun.append(client)
                client.register_plugin(QuietEnd(flag))
            # From here on, since a wait may be collected while the interrupt passes through the work.
            logging.getLogger("asyncio").addFilter(_is_no_cut_off_wait)
            yield client
        except KeyboardInterrupt:
            while begun:
                with suppress(Exception):
                    close()
            raise
        finally:
            close()


def _is_no_cut_off_wait(record: logging.LogRecord) -> bool:
    """False for what asyncio says, when it is collected, of a wait that Ctrl-C cut off."""
    return record.exc_info is None or getattr(record.exc_info[0], "__name__", "") != "AllExit"


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Ctrl-C within the block is heard at its end; threads and processes that begin in it never hear it.

    A cluster that is cut off half-way cannot be closed, and a terminal sends Ctrl-C to its workers too.
    """
    ours = threading.current_thread() is threading.main_thread() and hasattr(signal, "pthread_sigmask")
    if not ours or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True

    resource_tracker.ensure_running()  # who starts it is unblocked by it
    # The mask is for what begins here: another thread of this process may still be given the signal.
    before = signal.signal(signal.SIGINT, press)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
        if pressed:
            signal.raise_signal(signal.SIGINT)


def shared_folder(folder: str | os.PathLike[str], client: Client) -> str:
    """The folder for `resume`, made where it is missing.

    Raises
    ------
    ValueError
        If it cannot be written to, or a worker does not see what this process writes there.
    """
    path = check_folder(folder, "resume")
    with tempfile.NamedTemporaryFile(dir=path, prefix=".seen-") as file:
        blind = [worker for worker, seen in client.run(os.path.exists, file.name).items() if not seen]
    if blind:
        raise ValueError(
            f"resume must be a folder that all workers see, {str(path)!r} is not seen by {blind[0]}"
        )
    return str(path)


def check_folder(folder: str | os.PathLike[str], parameter: str) -> Path:
    """The folder, made where it is missing.

    Raises
    ------
    ValueError
        If it is empty, or nothing can be written there; `parameter` is named.

    Examples
    --------
    >>> check_folder("", "resume")
    Traceback (most recent call last):
    ValueError: resume must be the path of a folder, got ''
    """
    if not os.fspath(folder):
        raise ValueError(f"{parameter} must be the path of a folder, got ''")
    path = Path(folder).resolve()
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ValueError(
            f"{parameter} must be a folder that can be written to, got {os.fspath(folder)!r}: {reason(error)}"
        ) from None
    return path


def reason(error: BaseException) -> str:
    """What an error says, on one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split()) or type(error).__name__


def task_threads(n_jobs: int | None, *, alone: bool = False) -> int:
    """Threads of a task. None and negative: one, and for a task that stands alone all of the worker's, less
    those that a number below -1 leaves free."""
    if n_jobs is not None and n_jobs >= 0:
        return resolve_n_jobs(n_jobs)
    if not alone:
        return 1
    from distributed import get_worker

    try:
        return max(1, int(get_worker().state.nthreads) + 1 + (-1 if n_jobs is None else n_jobs))
    except ValueError:  # called outside a worker
        return 1
