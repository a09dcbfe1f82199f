"""`ServiceMetrics`: what a service counts, in the text format of Prometheus."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

# By which prometheus_client lets processes count together; read when it is imported.
_SHARED_METRICS = "PROMETHEUS_MULTIPROC_DIR"

# Seconds; ranking takes milliseconds, overload seconds.
_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_STAGES = (0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1)
_SIZES = (1, 2, 4, 8, 16, 32)


class ServiceMetrics:
    """Counts and times of one service, in a registry of its own.

    Where the environment names a folder in PROMETHEUS_MULTIPROC_DIR, they are those of all processes that
    share it; lengths of queues are then of a moment ago, and figures of the Python process are left out.

    Parameters
    ----------
    paths : tuple of str
        Paths that are counted by name; all others are "other".
    facts : dict of str to str
        What does not change: version, model.

    Examples
    --------
    >>> metrics = ServiceMetrics(("/rank",), {"version": "1"})
    >>> metrics.request("/rank", 200, 0.004)
    >>> "metarank_requests_total{path=\\"/rank\\",status=\\"200\\"} 1.0" in metrics.text().decode()
    True
    """

    def __init__(self, paths: tuple[str, ...], facts: dict[str, str]) -> None:
        self.registry: CollectorRegistry = CollectorRegistry()
        self._paths = frozenset(paths)
        own: dict[str, Any] = {"namespace": "metarank", "registry": self.registry}
        self._requests = Counter("requests", "Requests by path and status", ["path", "status"], **own)
        self._seconds = Histogram(
            "request_seconds", "From the start of a request to its reply", ["path"], buckets=_BUCKETS, **own
        )
        self._refused = Counter("refused", "Requests without an answer by reason", ["reason"], **own)
        self._closed = Counter("closed", "Connections that the service closed by reason", ["reason"], **own)
        self._stages = Histogram(
            "stage_seconds",
            "Of a request: wait, answer (with those taken at once), read, explain; of a batch: model, write",
            ["stage"],
            buckets=_STAGES,
            **own,
        )
        self._batch = Histogram("batch_requests", "Requests taken at once", buckets=_SIZES, **own)
        self._gauges = {
            name: Gauge(called, meaning, multiprocess_mode="livesum", **own)
            for name, called, meaning in (
                ("waiting", "waiting_requests", "Requests in the queues"),
                ("working", "working_requests", "Requests that a thread has taken"),
                ("pairs", "waiting_pairs", "Pairs of large requests that are not answered yet"),
                ("held", "held_bytes", "Bytes of requests and replies, less the first 64 KiB of each"),
            )
        }
        served = Gauge("service_info", "What is served", list(facts), multiprocess_mode="max", **own)
        served.labels(**facts).set(1)
        self._children: dict[tuple[int, tuple[str, ...]], Any] = {}
        self._lengths: dict[str, Callable[[], float]] = {}
        self._folder = os.environ.get(_SHARED_METRICS)
        if self.is_shared:
            self.registry = CollectorRegistry()
            MultiProcessCollector(self.registry, path=self._folder)  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)

    @property
    def is_shared(self) -> bool:
        """Whether processes count together; `refresh` is then to be called now and again."""
        return self._folder is not None

    def request(self, path: str, status: int, seconds: float) -> None:
        """A request that got its reply."""
        path = path if path in self._paths else "other"
        self._of(self._requests, path, str(status)).inc()
        self._of(self._seconds, path).observe(seconds)

    def _of(self, counted: Any, *labels: str) -> Any:
        """What is counted under labels; the library itself takes a lock and makes a key for each look."""
        key = (id(counted), labels)
        found = self._children.get(key)
        if found is None:
            found = self._children[key] = counted.labels(*labels)
        return found

    def refused(self, reason: str) -> None:
        """A request that got no answer, and why."""
        self._refused.labels(reason).inc()

    def closed(self, reason: str) -> None:
        """A connection that was closed, and why."""
        self._closed.labels(reason).inc()

    def stage(self, name: str, seconds: float) -> None:
        """How long a stage took."""
        self._of(self._stages, name).observe(seconds)

    def batch(self, requests: int) -> None:
        """How many requests were taken at once."""
        self._batch.observe(requests)

    def watch(self, **lengths: Callable[[], float]) -> None:
        """Where the lengths are read: of "waiting", "working", "pairs" and "held"."""
        self._lengths = lengths

    def refresh(self) -> None:
        """Read the lengths, for whichever process is asked."""
        for name, length in self._lengths.items():
            self._gauges[name].set(length())

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        self.refresh()
        return generate_latest(self.registry)
