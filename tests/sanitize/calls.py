"""Which functions and methods of the core are called, and which of them start threads."""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

_started: Callable[[], int] | None = getattr(ctypes.CDLL(None), "threads_started", None)


class Calls:
    """Counts calls of a core, and may raise the number of threads that each is asked for.

    Parameters
    ----------
    core : module
        Its functions and methods are replaced by ones that count.
    least_threads : int
        A call that asks for fewer threads asks for so many. Results do not depend on their number.
    """

    def __init__(self, core: ModuleType, least_threads: int = 1) -> None:
        self.least_threads = least_threads
        self.names: list[str] = []
        self.threaded: set[str] = set()
        self.called: set[str] = set()
        self.with_threads: set[str] = set()
        for owner, attribute, name in list(_entry_points(core)):
            setattr(owner, attribute, self._counted(getattr(owner, attribute), name))

    def _counted(self, function: Any, name: str) -> Callable[..., Any]:
        self.names.append(name)
        place = _place_of_threads(function)
        if place is not None:
            self.threaded.add(name)

        @functools.wraps(function, updated=())
        def call(*args: Any, **kwargs: Any) -> Any:
            if place is not None and len(args) > place:
                args = (*args[:place], max(args[place], self.least_threads), *args[place + 1 :])
            elif "n_threads" in kwargs:
                kwargs["n_threads"] = max(kwargs["n_threads"], self.least_threads)
            before = _started() if _started else 0
            result = function(*args, **kwargs)
            self.called.add(name)  # an error is no call: bad arguments are refused before the work
            if name in self.threaded and _started and _started() > before:
                self.with_threads.add(name)
            return result

        return call


def _entry_points(core: ModuleType) -> Iterator[tuple[Any, str, str]]:
    for name, value in vars(core).items():
        if type(value).__name__ == "nb_func":
            yield core, name, name
        elif isinstance(value, type):
            for attribute, method in vars(value).items():
                if type(method).__name__ == "nb_method" and not attribute.startswith("__"):
                    yield value, attribute, f"{name}.{attribute}"


def _place_of_threads(function: Any) -> int | None:
    """Where `n_threads` stands in a call, `self` included."""
    signature = re.sub(r"\[[^\[\]]*\]", "", function.__nb_signature__[0][0])
    parameters = signature[signature.index("(") + 1 : signature.rindex(") ->")].split(",")
    names = [parameter.partition(":")[0].strip() for parameter in parameters]
    return names.index("n_threads") if "n_threads" in names else None
