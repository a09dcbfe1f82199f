"""A page of results is replaced by a whole one only; what is less goes to a folder of its own.

A study writes its figures into `WholePage.folder` and then its text with `WholePage.write`. They stand beside
each other under `part/` until the text is there, and take the places of the page and its figures then, unless

- options narrowed the run (`--sets emotions`, `--quick`), or
- the text has lost a heading, a row or a filled cell that the page in place has (data that is not there,
  runs that are not kept); `--replace` is for a page that is meant to lose them.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

# What stands in a cell without a value.
_EMPTY = ("", "-", "–", "—")
_SHOWN = 3


class WholePage:
    """Where a run of a study writes to.

    Parameters
    ----------
    options : argparse.Namespace
        With what `add_options` added.
    parser : argparse.ArgumentParser
        That made them: it knows the defaults.
    narrowed_by : names of options; where one of them is not the default, the page is a part.

    Attributes
    ----------
    folder : Path
        For figures: beside the text, wherever that will be.
    """

    def __init__(
        self, options: argparse.Namespace, parser: argparse.ArgumentParser, narrowed_by: Sequence[str] = ()
    ) -> None:
        self.page: Path = parser.get_default("out")
        self.out: Path = options.out
        self.replace: bool = options.replace
        self.narrowed = [
            f"--{name.replace('_', '-')}"
            for name in narrowed_by
            if getattr(options, name) != parser.get_default(name)
        ]
        self.guarded = self.out.resolve() == self.page.resolve()
        self.folder = self.page.with_name("part") / self.page.stem if self.guarded else self.out.parent
        if self.guarded and self.folder.exists():
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def write(self, text: str) -> Path:
        """Write the text where it belongs, and say where that is."""
        written = self.folder / self.out.name
        written.write_text(text)
        if self.guarded:
            lacking = self._lacking(text)
            if lacking:
                print(f"a part of the page, {'; '.join(lacking)}: {self.page} is as it was", file=sys.stderr)
            else:
                # Figures first: the page names no figure that is not there.
                for file in sorted(self.folder.iterdir(), key=lambda path: path == written):
                    os.replace(file, self.page.with_name(file.name))
                self.folder.rmdir()
                with suppress(OSError):  # where a part of another page is
                    self.folder.parent.rmdir()
                written = self.page
        print(f"written: {written}", file=sys.stderr)
        return written

    def _lacking(self, text: str) -> list[str]:
        """Why the text may not replace the page; empty where it may."""
        found = [f"narrowed by {', '.join(self.narrowed)}"] if self.narrowed else []
        lost = losses(self.page.read_text(), text) if self.page.exists() else []
        if lost and not self.replace:
            more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
            found.append(f"without {', '.join(lost[:_SHOWN])}{more} (--replace where that is meant)")
        return found


def add_options(parser: argparse.ArgumentParser, page: Path) -> None:
    """`--out` and `--replace`."""
    parser.add_argument("--out", type=Path, default=page, help="write elsewhere, whatever it holds")
    parser.add_argument("--replace", action="store_true", help="though the page loses headings or rows by it")


def losses(old: str, new: str) -> list[str]:
    """The headings and the rows of tables of `old` of which `new` has less, in the order of `old`."""
    there = _outline(new)
    return [name for name, size in _outline(old).items() if there[name] < size]


def _outline(text: str) -> Counter[str]:
    """How much there is of each heading (1) and each row (filled cells), named by heading and first cell."""
    out: Counter[str] = Counter()
    heading = row = ""
    for line in text.splitlines():
        if line.startswith("#"):
            heading, row = line.lstrip("# ").strip(), ""
            out[f'"{heading}"'] += 1
        elif line.startswith("|"):
            cells = [cell.strip(" *") for cell in line.strip().strip("|").split("|")]
            if not all(set(cell) <= set("-: ") and cell for cell in cells):
                row = cells[0] or row  # an empty first cell continues the row above
                out[f'"{heading}", row "{row}"'] += sum(cell not in _EMPTY for cell in cells)
        else:
            row = ""
    return out
