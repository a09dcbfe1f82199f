"""The house stays readable: `tests/house.py` counts."""

from __future__ import annotations

from house import MOST_LINES_OF_A_FILE, circle, long_functions, package_files


def test_files_and_functions_are_short_and_import_each_other_in_one_direction():
    files = package_files()
    assert {str(file): lines for file, lines in files.items() if lines > MOST_LINES_OF_A_FILE} == {}
    assert dict(function for file in files for function in long_functions(file)) == {}
    assert circle() == []
