"""The page in a real browser: a person types an instance and sees ranked labels and their reasons."""

from __future__ import annotations

import re

import browser
import makers
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("websockets")
if browser.find() is None:
    pytest.skip(f"no browser on the path: {', '.join(browser.NAMES)}", allow_module_level=True)

from services import served

TEXT = "salt flour dough bug"


@pytest.fixture(scope="module")
def tab():
    with browser.tab() as found:
        yield found


@pytest.fixture(scope="module")
def words():
    with served("texts", max_body=500) as url:
        yield url


def opened(tab, url: str):
    tab.problems.clear()
    tab.fetched.clear()
    tab.open(url)
    tab.wait("document.getElementById('optimize').options.length === 5")
    return tab


def ask(tab, text: str) -> None:
    """In place of what was typed before."""
    tab.value("document.getElementById('instance').value = ''")
    tab.click("#instance")
    tab.type(text)
    tab.click("#ask")


def shown(tab) -> list[str]:
    """The labels on the page, in their order."""
    tab.wait("!document.getElementById('answer').hidden")
    return tab.value("[...document.querySelectorAll('#labels .name')].map((e) => e.textContent)")


def test_a_text_is_typed_and_labels_and_reasons_are_seen(tab, words):
    opened(tab, words)
    assert tab.value("document.getElementById('title').textContent") == "the <b>texts</b> model"
    ask(tab, TEXT)
    model = makers.fitted("texts")
    ranking = model.rank([TEXT])
    assert shown(tab) == [model.label_names_[v] for v in ranking.labels[0]]
    kept = set(model.predict([TEXT]).indices.tolist())
    found = tab.value("[...document.querySelectorAll('#labels > li')].map((e) => e.className === 'kept')")
    assert found == [int(v) in kept for v in ranking.labels[0]]
    probable = model.predict_proba([TEXT])[0]
    widths = tab.value("[...document.querySelectorAll('.bar span')].map((e) => parseFloat(e.style.width))")
    assert widths == pytest.approx([100 * probable[v] for v in ranking.labels[0]], abs=0.06)
    # The first label is open, with its reasons; another opens on a click.
    why = tab.wait("document.querySelector('#labels li:first-child .why table')?.textContent")
    nearest = model.explain(TEXT, int(ranking.labels[0, 0])).neighbors[0]
    whole = tab.value("document.querySelector('#labels li:first-child .why').textContent")
    assert why
    assert nearest.name in whole
    status = tab.value("document.getElementById('status').textContent")
    assert status.startswith("3 labels by score, ")
    assert f"keep {len(kept) or 'none'} of them" in status
    # Each label that is kept is marked by itself, wherever it stands; what is said adds up to the score.
    marks = tab.value("[...document.querySelectorAll('#labels .mark')].map((e) => e.textContent !== '')")
    assert marks == found
    first = "#labels li:first-child .why tr td:first-child"
    cells = tab.value(f"[...document.querySelectorAll('{first}')].map((e) => e.textContent)")
    parts = [
        int(cell.replace("−", "-").replace(".", "")) for cell in cells if re.match(r"[+−]\d+\.\d{3}$", cell)
    ]
    assert f"={ranking.scores[0, 0]:.3f}".replace("-", "−") in cells
    assert sum(parts) == round(1000 * float(ranking.scores[0, 0]))
    tab.click("#labels li:last-child summary")
    assert tab.wait("document.querySelector('#labels li:last-child .why table')?.textContent")
    assert tab.problems == []
    assert all(url.startswith((words, "data:")) for url in tab.fetched)


def test_a_text_without_a_known_word_is_told(tab, words):
    opened(tab, words)
    status = "document.getElementById('status').textContent"
    for text, unknown in (("zzyzx qwrt", True), ("zzyzx sea", False)):
        tab.value("document.getElementById('labels').replaceChildren()")
        ask(tab, text)
        tab.wait("document.querySelectorAll('#labels li').length")
        told = "The model knows nothing of this text: its labels are in order of frequency. "
        assert tab.value(status).startswith(told) == unknown
    assert tab.problems == []


def test_it_needs_no_mouse(tab, words):
    opened(tab, words)
    path = []
    for _ in range(4):
        tab.press("Tab")
        path.append(tab.value("document.activeElement.id"))
    assert path == ["instance", "k", "optimize", "ask"]
    tab.value("document.getElementById('instance').focus()")
    tab.type("sea sun wave")
    tab.press("Enter", control=True)
    assert shown(tab)[0] == "the sea"
    for _ in range(4):
        tab.press("Tab")
    assert tab.value("document.activeElement.tagName") == "SUMMARY"
    tab.press("Tab")  # into the next label
    tab.press("Enter")
    assert tab.wait("document.querySelectorAll('#labels li:nth-child(2) .why table').length")
    assert tab.problems == []


def test_what_is_refused_is_said(tab, words):
    opened(tab, words)
    ask(tab, "sea " * 200)
    problem = "document.getElementById('problem')"
    assert tab.wait(f"!{problem}.hidden && {problem}.textContent") == "the body must have at most 500 bytes"
    ask(tab, "bread")
    assert shown(tab)[0] == "bread"
    assert tab.value(f"{problem}.hidden")


def test_a_service_that_was_silent_is_asked_again(tab, words):
    opened(tab, words)
    tab.value(
        "facts = null; window.real = window.fetch; window.fetch = () => Promise.reject(new TypeError()); 0"
    )
    ask(tab, "bread")
    problem = "document.getElementById('problem')"
    assert tab.wait(f"!{problem}.hidden && {problem}.textContent").startswith("The service did not answer")
    tab.value("window.fetch = (p, r) => p === 'explain' ? Promise.reject(new TypeError()) : real(p, r); 0")
    tab.click("#ask")
    assert shown(tab)[0] == "bread"
    assert tab.wait("document.querySelector('.why .down')?.textContent").startswith("The service")
    tab.value("window.fetch = real; 0")
    tab.click("#labels li:first-child summary")
    tab.click("#labels li:first-child summary")
    assert tab.wait("document.querySelector('#labels li:first-child .why table')?.textContent")


def test_a_token_is_typed_where_the_service_has_one(tab):
    with served("texts", token="secret") as url:
        tab.problems.clear()
        tab.open(url)
        problem, options = "document.getElementById('problem')", "document.getElementById('optimize').options"
        said = f"!{problem}.hidden && {problem}.textContent"
        assert tab.wait(said) == "This service needs its token."
        tab.click("#token")
        tab.type("wrong")
        tab.press("Enter")
        assert tab.wait(f"{problem}.textContent.startsWith('This is not the token')")
        tab.value("document.getElementById('token').value = ''")
        tab.type("secret")
        tab.press("Enter")
        tab.wait(f"{options}.length === 5 && {problem}.hidden")
        assert tab.value("document.getElementById('access').hidden")
        ask(tab, "bread")
        assert shown(tab)[0] == "bread"
        assert tab.wait("document.querySelector('#labels li:first-child .why table')?.textContent")


def test_texts_from_outside_are_no_markup(tab, words):
    opened(tab, words)
    ask(tab, "<img src=x onerror='document.title=1'> sea")
    shown(tab)
    assert tab.value("document.querySelectorAll('img, b').length") == 0
    assert tab.problems == []


def test_numbers_are_typed_as_pairs_lists_or_json(tab):
    model = makers.fitted("dense")
    with served("dense") as url:
        opened(tab, url)
        assert tab.value("document.getElementById('instance-label').textContent") == "Features"
        expected = [f"label {v}" for v in model.rank([[1, 0, 0, -2.5, 0, 0]]).labels[0]]
        for typed in ("0:1 3:-2.5", "1, 0 0 -2.5 0 0", '{"0": 1, "3": -2.5}', "[1, 0, 0, -2.5, 0, 0]"):
            tab.value("document.getElementById('labels').replaceChildren()")
            ask(tab, typed)
            tab.wait("document.querySelectorAll('#labels li').length")
            assert shown(tab) == expected
        tab.value("document.getElementById('instance').value = '1 two 3'")
        tab.click("#ask")
        problem = "document.getElementById('problem')"
        assert tab.wait(f"!{problem}.hidden && {problem}.textContent") == '"two" is not a number'
        tab.value("document.getElementById('instance').value = '[1, 2'")
        tab.click("#ask")
        assert tab.wait(f"{problem}.textContent.endsWith('must be JSON.')")
        assert tab.problems == []


_CONTRAST = """
(() => {
  const channel = (v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const numbers = (c) => c.match(/[\\d.]+/g).map(Number);
  const light = (c) => {
    const [r, g, b] = numbers(c).map((v) => channel(v / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$/.test(c)) return c;
    }
  };
  const low = [];
  for (const e of document.querySelectorAll("main *")) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.offsetParent) continue;
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push([e.tagName, e.className, ratio]);
  }
  return low;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_and_fits_narrow_windows(tab, words, scheme):
    tab.show_as(scheme)
    opened(tab, words)
    ask(tab, TEXT)
    shown(tab)
    tab.wait("document.querySelector('.why table') !== null")
    assert tab.value(_CONTRAST) == []
    for width in (320, 1200):
        tab.resize(width, 800)
        assert tab.value("document.documentElement.scrollWidth") <= width
    ground = tab.value("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (scheme == "light")
