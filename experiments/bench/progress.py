"""What a person sees of a run: a line a cell, with the time that is left."""

from __future__ import annotations

import sys
import threading
import time

from declared import Cell, Figures


class Progress:
    def __init__(self, total: int) -> None:
        self.total, self.count, self.started = total, 0, time.perf_counter()
        self._writing = threading.Lock()

    def done(self, cell: Cell, line: Figures) -> None:
        with self._writing:
            self.count += 1
            spent = time.perf_counter() - self.started
            left = spent / self.count * (self.total - self.count)
            told = line.get("failed") or f"{line['train_s']:.1f} s"
            place = f"{self.count}/{self.total}, {spent / 60:.0f} min, about {left / 60:.0f} left"
            print(f"[{place}] {cell}: {told}", file=sys.stderr, flush=True)
