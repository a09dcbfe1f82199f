"""A service in a thread of the tests' own process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import makers
import uvicorn

from metarank.serve import ServeOptions, create_app
from metarank.serve.run import listen, url_of


@contextmanager
def served(name: str, **options: int) -> Iterator[str]:
    """The address of a service of a maker's model, whose name is in need of escaping."""
    app = create_app(makers.fitted(name), ServeOptions(**options), name=f"the <b>{name}</b> model")
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
    with listen("127.0.0.1", 0) as listener:
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        yield url_of(listener)
        server.should_exit = True
        thread.join(20)
