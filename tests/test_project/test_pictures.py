"""The pictures of the documentation: small, whole, and shown by a page."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
PICTURES = sorted((ROOT / "docs" / "pictures").iterdir())
SCREENSHOTS = {
    f"{what}-{width}-{scheme}.png"
    for what in ("report", "service")
    for width in (1400, 400)
    for scheme in ("light", "dark")
}


def test_they_are_small():
    assert sum(path.stat().st_size for path in PICTURES) <= 400 * 1024


def test_every_screenshot_is_there():
    assert {path.name for path in PICTURES if path.suffix == ".png"} == SCREENSHOTS


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_picture_is_whole_and_has_a_title(path):
    if path.suffix == ".png":
        data = path.read_bytes()
        assert data.startswith(b"\x89PNG")
        assert int.from_bytes(data[16:20], "big") == int(path.stem.split("-")[1])
        assert data.endswith(b"IEND\xaeB`\x82")
    else:
        title = ElementTree.parse(path).getroot().find("{http://www.w3.org/2000/svg}title")
        assert title is not None
        assert title.text


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.name)
def test_a_page_shows_it(path):
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(f"pictures/{path.name}" in page.read_text(encoding="utf-8") for page in pages)
