"""`PAGE`: the page for a person, one HTML text that fetches nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files


def _read(name: str) -> str:
    return files("metarank.apps.serve").joinpath("static", name).read_text(encoding="utf-8").strip()


def _allowed(text: str) -> str:
    """The one inline text that a browser may take for script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _page() -> tuple[bytes, dict[str, str]]:
    style, script = _read("style.css"), _read("script.js")
    html = _read("page.html").replace("{style}", style).replace("{script}", script)
    policy = (
        f"default-src 'none'; style-src {_allowed(style)}; script-src {_allowed(script)}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
    return html.encode(), headers


PAGE, PAGE_HEADERS = _page()
