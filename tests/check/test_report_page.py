"""The report in a real browser, on a telephone and a screen, light and dark: nothing is cut or covered."""

from __future__ import annotations

import browser
import pytest

from metarank import MetaRanker, data
from metarank.apps.report import measure_report, write_report

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
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    train, test = data.load_pydocs("train").take(slice(0, 400)), data.load_pydocs("test").take(slice(0, 60))
    model = MetaRanker(effort="low", n_jobs=1).fit(train)
    model.fitted_.propensity_weight = 0.3
    slices = {"package": [t.partition(".")[0] for t in test.texts]}
    write_report(path, measure_report(model, test, slices=slices))
    return path.as_uri()


@pytest.fixture(scope="module")
def tab():
    with browser.tab() as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1400])
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
