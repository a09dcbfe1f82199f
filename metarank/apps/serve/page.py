"""`PAGE`: what a person sees, HTML that fetches nothing from elsewhere; its headers hold it to that."""

from __future__ import annotations

import base64
import hashlib

from jinja2 import Environment, PackageLoader

_TEMPLATES = Environment(loader=PackageLoader("metarank.apps.serve", "static"))  # of our own texts alone
_STYLE, _SCRIPT = (_TEMPLATES.get_template(name).render() for name in ("style.css", "script.js"))


def _hash(text: str) -> str:
    """The one inline text that a browser may take for script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


PAGE: bytes = _TEMPLATES.get_template("page.html").render(style=_STYLE, script=_SCRIPT).encode()
PAGE_HEADERS: dict[str, str] = {
    "content-security-policy": (
        f"default-src 'none'; style-src {_hash(_STYLE)}; script-src {_hash(_SCRIPT)}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
