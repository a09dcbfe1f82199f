"""The rooms of the package stand in an order: each imports only those before it; no file stands outside."""

from __future__ import annotations

from pathlib import Path

import pytest
from house import imported

PACKAGE = Path(__file__).parents[2] / "metarank"
ROOMS = ["_core", "_util", "persist", "types", "metrics", "data", "text", "scorers", "ranker", "thresholds"]
ROOMS += ["objectives", "model", "distributed", "apps"]
# Names of the top level that lead into a room, for users; nothing within imports them.
DOORS = ["plot", "serve", "shortlist"]
FILES = sorted(PACKAGE.rglob("*.py"))


def test_the_top_level_holds_rooms_and_doors():
    names = {path.name.split(".")[0] for path in PACKAGE.iterdir()} - {"__pycache__", "py"}
    assert names == {*ROOMS, *DOORS, "__init__", "__main__"}


@pytest.mark.parametrize("room", ROOMS[1:])
def test_a_room_imports_only_rooms_before_it(room):
    at = ROOMS.index(room)
    later = {*ROOMS[at + 1 :], *DOORS}
    bad = [
        (str(file.relative_to(PACKAGE)), name)
        for file in FILES
        if file.relative_to(PACKAGE).parts[0] == room
        for name in imported(file)
        if name.split(".")[1] in later
    ]
    assert bad == []


def test_no_two_modules_have_one_name():
    """But for what a room has by its nature, such as the checks of its own inputs; a command is named after
    what it runs, and a door after where it leads."""
    usual = {"__init__", "__main__", "base", "checks", "inputs", "lists", "parameters", "state"}
    rooms = [file.relative_to(PACKAGE).parts[0] for file in FILES]
    names = [file.stem for file, room in zip(FILES, rooms) if room in ROOMS and room != "apps"]
    assert sorted(name for name in set(names) - usual if names.count(name) > 1) == []
