"""`PAGE` and `docs_page`: what a person sees, HTML that fetches nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any


def _read(name: str) -> str:
    return files("metarank.apps.serve").joinpath("static", name).read_text(encoding="utf-8").strip()


def _allowed(text: str) -> str:
    """The one inline text that a browser may take for script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _page() -> tuple[bytes, dict[str, str]]:
    style, script = _read("style.css"), _read("script.js")
    page = _read("page.html").replace("{style}", style).replace("{script}", script)
    policy = (
        f"default-src 'none'; style-src {_allowed(style)}; script-src {_allowed(script)}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "cache-control": "no-cache",
    }
    return page.encode(), headers


PAGE, PAGE_HEADERS = _page()


def docs_page(described: dict[str, Any]) -> bytes:
    """The paths of a service with their fields and statuses, from its description by OpenAPI."""
    parts = [f"<!doctype html><html lang=en><title>{_text(described['info']['title'])}</title>"]
    parts.append(f"<style>{_read('style.css')}</style><main><h1>{_text(described['info']['title'])}</h1>")
    parts.append(
        f"<p>{_text(described['info']['description'])} As data: <a href=openapi.json>OpenAPI</a>.</p>"
    )
    for path, methods in described["paths"].items():
        for method, what in methods.items():
            parts.append(
                f"<h2>{method.upper()} {_text(path)}</h2><p>{_text(what.get('description', ''))}</p>"
            )
            for content in what.get("requestBody", {}).get("content", {}).values():
                fields = content["schema"]["properties"]
                parts.append(_list((name, _said(field)) for name, field in fields.items()))
            parts.append(_list((code, reply["description"]) for code, reply in what["responses"].items()))
    return "".join([*parts, "</main></html>"]).encode()


def _said(field: dict[str, Any]) -> str:
    default = field.get("default")
    return field.get("description") or ("" if default is None else f"default {json.dumps(default)}")


def _list(entries: Iterable[tuple[str, str]]) -> str:
    shown = (f"<dt><code>{_text(name)}</code></dt><dd>{_text(said)}</dd>" for name, said in entries)
    return f"<dl>{''.join(shown)}</dl>"


def _text(words: str) -> str:
    return html.escape(words)
