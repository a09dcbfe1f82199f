"""The pictures of the documentation: `make pictures` writes them to docs/pictures/.

Two are drawn, the others show what a model does: on pydocs, on generated documents with two objectives, on
simulated clicks, and in the tables of experiments.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import charts
import numpy as np

PICTURES = Path(__file__).resolve().parents[1] / "pictures"
TEAL, AMBER, GREY = "#009e73", "#d55e00", "#7f7f7f"
FONT = "font-family='system-ui, sans-serif'"


def drawing(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' {FONT}>"
    arrow = (
        "<defs><marker id='a' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' "
        "orient='auto'><path d='M0 0L8 4L0 8z' fill='currentColor'/></marker></defs>"
    )
    return "\n".join(
        [head, f"<title>{html.escape(title)}</title>{charts.STYLE}{arrow}", *parts, "</svg>", ""]
    )


def words(x: float, y: float, text: str, size: int = 14, anchor: str = "start", more: str = "") -> str:
    of = f"x='{x}' y='{y}' font-size='{size}' text-anchor='{anchor}' fill='currentColor' {more}"
    return f"<text {of}>{html.escape(text)}</text>"


def box(x: float, y: float, width: float, height: float, colour: str, strength: float = 0.18) -> str:
    of = f"x='{x}' y='{y}' width='{width}' height='{height}' rx='6' stroke='{colour}'"
    return f"<rect {of} fill='{colour}' fill-opacity='{strength}'/>"


def arrow(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"<path d='M{x0} {y0}L{x1} {y1}' stroke='currentColor' fill='none' marker-end='url(#a)'/>"


def flow() -> str:
    """From a row to its ranking."""
    steps = [
        ("row and labels", "a text or a vector; labels, perhaps with names", GREY),
        ("shortlist", "label trees, one-vs-all, neighbors and names propose labels", TEAL),
        ("candidates", "pairs (row, label); a quick filter drops most of them", TEAL),
        ("meta-features", "what each source says of a pair; held out in training", TEAL),
        ("ranker", "boosted trees or linear models order the pairs", TEAL),
        ("thresholds", "probabilities, and how many labels to keep", TEAL),
        ("answers", "ranking, label sets, explanations", AMBER),
    ]
    parts = []
    for i, (name, what, colour) in enumerate(steps):
        y = 8 + 52 * i
        parts += [box(8, y, 150, 34, colour), words(83, y + 22, name, 15, "middle", "font-weight='600'")]
        parts.append(words(176, y + 22, what))
        if i:
            parts.append(arrow(83, y - 17, 83, y - 2))
    return drawing(620, 52 * len(steps), "How metarank ranks: " + ", ".join(step[0] for step in steps), parts)


def folds(n: int = 5) -> str:
    """Which rows a source learns from when it describes a row."""
    parts = [words(250 + 66 * (n / 2), 18, "training rows, in folds", 14, "middle")]
    lines = [(f"a training row of fold {fold}", fold) for fold in (1, 2)] + [("a new row", 0)]
    for i, (name, out) in enumerate(lines):
        y = 34 + 56 * i
        parts += [words(8, y + 23, name, 14), words(178, y + 23, "learns from", 12)]
        for fold in range(1, n + 1):
            x = 250 + 66 * (fold - 1)
            hidden = fold == out
            parts.append(box(x, y, 58, 36, AMBER if hidden else TEAL, 0.05 if hidden else 0.3))
            parts.append(words(x + 29, y + 23, "hidden" if hidden else str(fold), 13, "middle"))
    last = 34 + 56 * len(lines) + 14
    parts.append(
        words(8, last, "Neighbors, label trees and classifiers describe a training row by models that never")
    )
    parts.append(
        words(8, last + 20, "saw the labels of its fold. So its columns look like those of a new row.")
    )
    return drawing(
        600, last + 30, "A training row is described without its own fold; a new row by all rows", parts
    )


def explanation(model: Any, test: Any) -> str:
    """The shortlist of a row, and what makes up the score of its first label."""
    row = 3
    found = model.rank(test.take([row]), k=6)
    told = model.explain(test.take([row]), found.labels[0, 0]).reasons(5)
    title = f"The first labels of {test.texts[row].split()[0]}"
    figure, (left, right) = charts.subplots("explanation", 2, 2)
    figure.set_size_inches(8.2, 2.9)
    bars(left, [str(name) for name in found.names[0]], found.scores[0], TEAL, "score")
    left.set_title(title, fontsize=9)
    texts = [textwrap.fill(reason.text, 34) for reason in told]
    bars(right, texts, [reason.contribution for reason in told], AMBER, "part of the score")
    right.set_title(f"Why {found.names[0][0]} is first", fontsize=9)
    return charts.written(figure, f"{title}, and the parts of the score of {found.names[0][0]}")


def bars(axes: Any, names: Sequence[str], values: Any, colour: str, label: str) -> None:
    axes.barh(range(len(names)), np.asarray(values, float), color=colour)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.invert_yaxis()
    axes.axvline(0, color=charts.INK, linewidth=0.8)
    axes.set_xlabel(label)


def plotted(salt: str, title: str, draw: Callable[[Any], Any]) -> str:
    """A chart of `metarank.plot`."""
    figure, (axes,) = charts.subplots(salt, 1, 1)
    draw(axes)
    for text in axes.texts + axes.lines:
        if text.get_color() in ("#1c2430", "#5a6675"):
            text.set_color(charts.INK)
    axes.legend(frameon=False)
    axes.grid(alpha=0.15, color=charts.INK)
    figure.set_size_inches(4.8, 3.4)
    return charts.written(figure, title)


def front_of_two() -> Any:
    """The trade-offs between relevance and clicks of generated documents."""
    from metarank import MultiObjectiveRanker, pareto_front

    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    qid = np.repeat(np.arange(300), 10)
    noise = rng.logistic(size=(2, len(X)))
    relevance = (X[:, 0] + 0.3 * X[:, 2] + 0.5 * noise[0] > 0.5) * 1
    clicks = (X[:, 1] - 0.5 * X[:, 0] + 0.5 * noise[1] > 1) * 1
    ranker = MultiObjectiveRanker(n_rounds=60, n_jobs=1)
    return pareto_front(X, {"relevance": relevance, "clicks": clicks}, qid=qid, ranker=ranker, n_weights=9)


def clicked(n_lists: int = 4000, n_shown: int = 10, eta: float = 1.0) -> tuple[Any, np.ndarray]:
    """A ranker of simulated clicks on lists in the order of an older model, and the true examination."""
    from metarank import MultiObjectiveRanker

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_lists, n_shown, 4)).astype(np.float32)
    older = X[:, :, 0] + rng.normal(size=X.shape[:2])
    X = np.take_along_axis(X, np.argsort(-older, axis=1)[:, :, None], axis=1)
    attraction = 1 / (1 + np.exp(1.5 - X[:, :, 0] - X[:, :, 1]))
    true = np.arange(1, n_shown + 1.0) ** -eta
    click = rng.random(attraction.shape) < attraction * true
    position, qid = np.tile(np.arange(1, n_shown + 1), n_lists), np.repeat(np.arange(n_lists), n_shown)
    ranker = MultiObjectiveRanker(n_rounds=60, n_jobs=1)
    ranker.fit(X.reshape(-1, 4), {"clicks": click.ravel() * 1}, qid=qid, position=position)
    return ranker, true


def main() -> None:
    from metarank import MetaRanker, data, plot

    PICTURES.mkdir(exist_ok=True)
    train, test = data.load_pydocs("train"), data.load_pydocs("test")
    model = MetaRanker(n_jobs=1).fit(train)
    ranker, true = clicked()

    def examination(axes: Any) -> None:
        axes.plot(range(1, len(true) + 1), true, "--", color=charts.INK, label="true of the simulated users")
        plot.examination(ranker, axes)

    measured, trade_offs = plot.measure(model, test), front_of_two()
    made = {
        "flow": flow(),
        "folds": folds(),
        "explanation": explanation(model, test),
        "calibration": plotted(
            "calibration",
            "Share of pairs that are relevant against the probability, on test rows of pydocs",
            lambda axes: plot.calibration(measured, axes),
        ),
        "front": plotted(
            "front", "The trade-offs between two objectives", lambda axes: plot.front(trade_offs, axes)
        ),
        "examination": plotted("examination", "How often each position is looked at", examination),
        **{name: charts.scatter(asked) for name, asked in charts.CHARTS.items()},
    }
    for name, text in made.items():
        (PICTURES / f"{name}.svg").write_text(text, encoding="utf-8")
        print(f"docs/pictures/{name}.svg {len(text) / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
