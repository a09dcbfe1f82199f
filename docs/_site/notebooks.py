"""The notebooks of docs/notebooks: run, and turned into pages with what they print and draw.

They are stored without outputs, so that none is of an older state. What a run gave is kept, by a digest of
the notebook and of metarank's sources.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def executed(path: Path) -> Any:
    """The notebook with its outputs; a cell that fails is an error."""
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(book, timeout=1200, kernel_name="python3", resources=resources).execute()
    return book


def kept(path: Path, folder: Path) -> Any:
    """`executed`, or what it gave before, from a folder."""
    import nbformat

    digest = hashlib.sha256()
    for source in [path, *sorted((ROOT / "metarank").rglob("*.py"))]:
        digest.update(source.read_bytes())
    there = folder / f"{path.stem}-{digest.hexdigest()[:16]}.ipynb"
    if there.is_file():
        return nbformat.read(there, as_version=4)
    book = executed(path)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{path.stem}-*.ipynb"):
        old.unlink()
    nbformat.write(book, there)
    return book


def page(path: Path, folder: Path) -> str:
    """The notebook as Markdown."""
    parts = []
    for cell in kept(path, folder).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += shown(cell.outputs)
    name = path.name
    parts.insert(1, f'Run when this site was made; <a href="{name}" download>{name}</a> holds no outputs.')
    return "\n\n".join(parts) + "\n"


def shown(outputs: list[Any]) -> Iterator[str]:
    for output in outputs:
        if output.output_type == "stream":
            text, picture = output.text, None
        else:
            text = output.data.get("text/plain", "")
            picture = output.data.get("image/png")
        if picture is not None:
            data = "".join(picture.split())
            image = f'<img alt="What the cell above draws." src="data:image/png;base64,{data}">'
            yield f'<div class="printed">{image}</div>'
        elif text.strip():
            fence = f"```text\n{COLOURS.sub('', text).rstrip()}\n```"
            yield f'<div class="printed" markdown="1">\n\n{fence}\n\n</div>'
