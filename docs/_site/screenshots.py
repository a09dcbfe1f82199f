"""Screenshots of the HTML report and of the service's page: `make screenshots` writes them to docs/pictures/.

A browser shows what a model of pydocs gives, on a screen and a telephone, in light and dark.
"""

from __future__ import annotations

import base64
import io
import tempfile
from pathlib import Path
from typing import Any

import browser
from PIL import Image
from services import served

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
SIZES = {1400: 860, 400: 720}
N_COLOURS = 64
TEXT = "Compute the standard deviation of an array along an axis, ignoring values that are NaN."


def model_and_test() -> tuple[Any, Any]:
    """A model of the defaults, and the rows for its report."""
    from metarank import MetaRanker, data

    return MetaRanker(n_jobs=1).fit(data.load_pydocs("train")), data.load_pydocs("test")


def taken(tab: browser.Tab, name: str) -> None:
    """The page that the tab shows, at each size, as PNG of few colours."""
    tab.do("Emulation.setScrollbarsHidden", hidden=True)
    for width, height in SIZES.items():
        for scheme in ("light", "dark"):
            tab.show_as(scheme)
            tab.resize(width, height)
            tab.value("scrollTo(0, 0)")
            shot = tab.do("Page.captureScreenshot", format="png")
            image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
            path = PICTURES / f"{name}-{width}-{scheme}.png"
            few = image.quantize(N_COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
            few.save(path, optimize=True)
            print(f"{path.relative_to(ROOT)} {path.stat().st_size / 1024:.0f} KiB")


def main() -> None:
    from metarank.apps.report import measure_report, write_report

    PICTURES.mkdir(exist_ok=True)
    model, test = model_and_test()
    with tempfile.TemporaryDirectory() as folder, browser.tab() as tab:
        report = Path(folder) / "report.html"
        write_report(report, measure_report(model, test))
        tab.open(report.as_uri())
        taken(tab, "report")
        with served(model, name="pydocs") as url:
            tab.resize(1400, 860)
            tab.open(url)
            tab.wait("document.getElementById('optimize').options.length")
            tab.click("#instance")
            tab.type(TEXT)
            tab.click("#ask")
            tab.wait("document.querySelectorAll('.why table').length")
            tab.value("document.activeElement.blur()")
            taken(tab, "service")


if __name__ == "__main__":
    main()
