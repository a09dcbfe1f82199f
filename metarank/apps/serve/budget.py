"""`Budget`: an amount that all requests share."""

from __future__ import annotations

import threading


class Budget:
    """The pairs, or bytes, that requests may hold at a time. Thread-safe.

    Parameters
    ----------
    most : int
        A request for more than this succeeds if nobody else holds anything: otherwise a limit below the needs
        of one request would refuse it for ever.

    Examples
    --------
    >>> budget = Budget(10)
    >>> budget.take(8), budget.take(3), budget.take(2), budget.used
    (True, False, True, 10)
    >>> budget.give(10)
    >>> budget.take(11)
    True
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._used = 0
        self._lock = threading.Lock()

    @property
    def used(self) -> int:
        """The amount that is taken."""
        return self._used

    def take(self, size: int, has: int = 0) -> bool:
        """Take `size` if it is free. `has` is what the same request took before. Returns whether it was."""
        with self._lock:
            if self._used > has and size > 0 and self._used + size > self.most:
                return False
            self._used += size
            return True

    def give(self, size: int) -> None:
        """Give back what was taken."""
        with self._lock:
            self._used -= size


class Share:
    """What one request holds of a budget. The first `free` units of each take are not counted.

    Once the share is released, a thread that still works on the request can take no more.

    Examples
    --------
    >>> budget = Budget(100)
    >>> share, other = Share(budget, free=10), Share(budget)
    >>> other.take(50), share.take(30), share.take(200), share.take(50, before=30), budget.used
    (True, True, False, True, 90)
    >>> share.release()
    >>> budget.used, share.take(1)
    (50, False)
    """

    def __init__(self, budget: Budget, free: int = 0) -> None:
        self._budget = budget
        self._free = free
        self._taken = 0
        self._is_released = False
        self._lock = threading.Lock()

    def take(self, size: int, before: int = 0) -> bool:
        """Take `size` in all for something that took `before` already. Returns whether it was free."""
        counted = max(0, size - self._free) - max(0, before - self._free)
        with self._lock:
            if self._is_released or not self._budget.take(counted, self._taken):
                return False
            self._taken += counted
            return True

    def release(self) -> None:
        """Give back all of it."""
        with self._lock:
            self._is_released = True
            self._budget.give(self._taken)
            self._taken = 0
