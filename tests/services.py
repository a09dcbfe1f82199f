"""A service in a thread of the tests' own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import makers

from metarank import MetaRanker
from metarank.apps.serve.run import Server, listen, url_of
from metarank.serve import Access, ServeOptions, create_app

# Seconds for what must come to pass at some time, however busy the machine is; nothing is measured.
LONG = 300
# So long a service waits for its clients and they for it, where a test does not say otherwise.
PATIENT = dict.fromkeys(("timeout", "head_timeout", "idle_timeout", "stop_timeout"), LONG / 2)


@contextmanager
def served(name: str, token: str | None = None, **options: float) -> Iterator[str]:
    """The address of a service of a maker's model, whose name is in need of escaping."""
    called = f"the <b>{name}</b> model"
    with serving(makers.fitted(name), called, Access(token=token), **options) as (url, _):
        yield url


@contextmanager
def serving(
    model: MetaRanker, name: str = "model", access: Access | None = None, **options: float
) -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a service, and what ends it as a signal does."""
    limits = ServeOptions(**PATIENT | options)
    server = Server(create_app(model, limits, name=name, access=access), limits, lambda: None)

    def stop() -> None:
        server.should_exit = True
        thread.join(LONG)
        assert not thread.is_alive()

    with listen("127.0.0.1", 0) as listener:
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield url_of(listener), stop
        finally:
            stop()
