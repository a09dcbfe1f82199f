"""What is wrong with a site as it was written: links and anchors that lead nowhere, assets from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, as against links that a reader follows.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "image": "href"}


class Page(HTMLParser):
    """The anchors, links and fetched assets of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in FETCHED and given.get(FETCHED[tag]):
            self.fetched.append(given[FETCHED[tag]])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preconnect", "preload"):
            self.fetched.append(given["href"])


def faults_of(site: Path) -> Iterator[str]:
    """A line for each fault of the pages below a folder."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        if name.as_posix() == "404.html":  # its links start at the root of a server
            continue
        for link in page.fetched:
            if urlsplit(link).scheme not in ("", "data") or link.startswith("//"):
                yield f"{name} fetches {link}"
        for link in dict.fromkeys(page.links + page.fetched):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                yield f"{name}: {link} leads to no file"
            elif target in pages and unquote(parts.fragment) not in {"", "__top", *pages[target].anchors}:
                yield f"{name}: {link} leads to no anchor"
