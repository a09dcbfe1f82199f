"""The report in a real browser, on a telephone and a screen, light and dark: nothing is cut or covered."""

from __future__ import annotations

import base64
import io
from collections import Counter
from dataclasses import replace

import browser
import pytest

from metarank import MetaRanker, data
from metarank.apps.report import measure_report, write_report
from metarank.metrics import FrequencyBin

pytest.importorskip("websockets")
if browser.find() is None:
    pytest.skip(f"no browser on the path: {', '.join(browser.NAMES)}", allow_module_level=True)

# What reaches out of the window, but in a table that scrolls.
OUTSIDE = """(() => { const w = document.documentElement.clientWidth;
return [...document.querySelectorAll("body *")].filter(e => { const b = e.getBoundingClientRect();
  return !e.closest(".wide") && b.width && (b.right > w + 1 || b.left < -1) })
  .map(e => e.tagName + " " + e.textContent.slice(0, 40)) })()"""
# Texts of charts that leave their chart, or cover one another.
COVERED = """(() => { const out = [];
for (const svg of document.querySelectorAll("figure > svg")) {
  const f = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map(t => [t.getBoundingClientRect(), t.textContent]);
  texts.forEach(([b, t], i) => {
    if (b.left < f.left - 1 || b.right > f.right + 1 || b.bottom > f.bottom + 1) out.push(t + " leaves");
    for (const [c, u] of texts.slice(0, i)) {
      const x = Math.min(b.right, c.right) - Math.max(b.left, c.left);
      if (x > 1 && Math.min(b.bottom, c.bottom) - Math.max(b.top, c.top) > 3) out.push(t + " on " + u); } }) }
return out })()"""
# Headings of which a word is wider than its line, and so cut or out of it.
CUT = """(() => [...document.querySelectorAll("h1, h2, h3, h4, figcaption, th, dt")].filter(e =>
  e.scrollWidth > e.clientWidth + 1 && !e.closest(".wide")).map(e => e.textContent))()"""
COLOURS = """(() => [...document.querySelectorAll("figure")].map(f =>
  [...f.querySelectorAll(".legend .mark, .legend .swatch")].map(e =>
    e.matches(".mark") ? getComputedStyle(e).fill : getComputedStyle(e).backgroundColor)))()"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    train, test = data.load_pydocs("train").take(slice(0, 400)), data.load_pydocs("test").take(slice(0, 60))
    model = MetaRanker(effort="low", n_jobs=1).fit(train)
    model.fitted_.propensity_weight = 0.3
    found = measure_report(model, test, slices={"package": [t.partition(".")[0] for t in test.texts]})
    write_report(path, found)
    return path, found


@pytest.fixture(scope="module", params=["measured", "long names"])
def page(request, report):
    """A report; as measured, or with the label frequencies of a large set."""
    path, found = report
    if request.param == "long names":
        highs = [0, 12, 113, 431, 1032, 5408, 120345][: len(found.bins)]
        bins = [FrequencyBin(low + 1, high, 9, 9) for low, high in zip([-1, *highs], highs)]
        path = path.with_name("long-names.html")
        write_report(path, replace(found, bins=bins))
    return path.as_uri()


@pytest.fixture(scope="module")
def tab():
    with browser.tab() as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 400, 1400])
def test_the_page_fits(tab, page, width, scheme):
    tab.show_as(scheme)
    tab.resize(width, 900)
    tab.open(page)
    assert tab.value("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert tab.value(OUTSIDE) == []
    assert tab.value(COVERED) == []
    assert tab.value(CUT) == []
    series = [colours for colours in tab.value(COLOURS) if colours]
    assert len(series) == 3
    assert all(len(set(colours)) == len(colours) > 2 for colours in series)
    heights = "[...document.querySelectorAll('figure svg text')].map(e => e.getBoundingClientRect().height)"
    assert min(tab.value(heights)) >= 11
    assert tab.problems == []


def edges(tab, css: str) -> list[str]:
    """The most frequent colours of the left and the right edge of an element."""
    from PIL import Image

    box = tab.value(
        f"(() => {{ const b = document.querySelector({css!r}).getBoundingClientRect();"
        "return [b.left, b.top + scrollY, b.width, b.height] })()"
    )
    shot = tab.do(
        "Page.captureScreenshot",
        clip={**dict(zip(("x", "y", "width", "height"), box)), "scale": 1},
    )
    image = Image.open(io.BytesIO(base64.b64decode(shot["data"]))).convert("RGB")
    columns = [[image.getpixel((x, y)) for y in range(image.height)] for x in (1, image.width - 2)]
    return [Counter(column).most_common(1)[0][0] for column in columns]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_wide_tables_show_that_they_scroll(tab, report, scheme):
    pytest.importorskip("PIL")
    tab.show_as(scheme)
    tab.resize(320, 1500)
    tab.open(report[0].as_uri())
    plain = (255, 255, 255) if scheme == "light" else (20, 24, 30)
    assert tab.value(
        "document.querySelector('.wide').scrollWidth > document.querySelector('.wide').clientWidth"
    )
    left, right = edges(tab, ".wide")
    assert left == plain != right
    tab.value("document.querySelector('.wide').scrollLeft = 20")
    left, right = edges(tab, ".wide")
    assert left != plain != right
    tab.value("document.querySelector('.wide').scrollLeft = 1e6")
    left, right = edges(tab, ".wide")
    assert left != plain == right
    tab.resize(1400, 1500)
    assert edges(tab, ".wide") == [plain, plain]
