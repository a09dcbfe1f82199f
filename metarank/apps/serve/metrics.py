"""`ServiceMetrics`: what a service counts, in the text format of Prometheus."""

from __future__ import annotations

import os
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

# A folder by which processes count together; prometheus_client reads it when it is imported.
SHARED = "PROMETHEUS_MULTIPROC_DIR"

# Seconds; ranking takes milliseconds, overload seconds.
_BUCKETS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class ServiceMetrics:
    """Counts and times of one service, in a registry of its own.

    Where the environment names a folder in PROMETHEUS_MULTIPROC_DIR, they are those of all processes that
    share it, and figures of the Python process are left out.

    Parameters
    ----------
    facts : dict of str to str
        What does not change: version, model.

    Examples
    --------
    >>> metrics = ServiceMetrics({"version": "1"})
    >>> metrics.request("/rank", 200, 0.004)
    >>> "metarank_requests_total{path=\\"/rank\\",status=\\"200\\"} 1.0" in metrics.text().decode()
    True
    """

    def __init__(self, facts: dict[str, str]) -> None:
        self.registry: CollectorRegistry = CollectorRegistry()
        where: dict[str, Any] = {"namespace": "metarank", "registry": self.registry}
        self._requests = Counter("requests", "Requests by path and status", ["path", "status"], **where)
        self._seconds = Histogram(
            "request_seconds", "From the start of a request to its reply", ["path"], buckets=_BUCKETS, **where
        )
        info = Gauge("service_info", "What is served", list(facts), multiprocess_mode="max", **where)
        info.labels(**facts).set(1)
        if SHARED in os.environ:
            self.registry = CollectorRegistry()
            MultiProcessCollector(self.registry)  # type: ignore[no-untyped-call]
        else:
            ProcessCollector(registry=self.registry)
            PlatformCollector(registry=self.registry)

    def request(self, path: str, status: int, seconds: float) -> None:
        """A request that got its reply."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        return generate_latest(self.registry)
