"""Candidates of others: fused, described by features of pairs, re-ranked; what one would write oneself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import mq2008
from declared import Figures, Lines, Study, System
from page_parts import number, table
from sets import DATA
from systems.fusion import pairs, reranking, texts, yso

YSO, MQ2008, COOKING = "yso-en", "MQ2008", "cooking_stackexchange"
RERANKED = ("LLMs4Subjects-dev-en", "CiteULike-t-tags")
# Six fits each: those of the peers on CiteULike-t-tags would take as long as all else.
PEERS = {"omikuji": {"n_trees": 3}, "PECOS": {"n_trees": 1, "nr_splits": 16}}
RETRIEVERS = (
    System("inverted index", "fusion.reranking", {"retriever": "inverted index"}, sets=RERANKED),
    *(
        System(name, "fusion.reranking", {"retriever": name.lower(), "settings": settings}, sets=RERANKED[:1])
        for name, settings in PEERS.items()
    ),
)
WAYS = (texts.VOTE, texts.SVC, texts.METARANK)
PUBLISHED = {
    "published: neural ensemble of three sources": "annif nn ensemble (3 sources)",
    "published: best of each column, three sources": "best of the scoreboard, column by column (3 sources)",
}
FUSED = (
    "{sizes[train]:,} training documents, {sizes[test]:,} of the test part, {sizes[labels]:,} labels. "
    "Two sources: the third of the published ensembles has no scores of the training documents. Against "
    "all gold labels. *Weighted mean*: bonsai's weight, {weight:.2f}, is the best of 21 on training "
    "documents. *LightGBM LambdaRank*: score, 1 / rank and share of the best score by both sources, in "
    "how many lists, the label's training rows (of other folds); it learns from the best hundred of "
    "either. On the training documents nDCG@10 of bonsai is {of_training[bonsai]}, of mllm "
    "{of_training[mllm]}: mllm was trained on some of them, or they are of another kind; fits trust it "
    "too much."
)
PAIRS = (
    "{queries} queries with graded documents of their own. Each of five parts is tested once, by fits on the "
    "four others; means. BM25 proposes, and 46 columns describe (`pair_features=`). LightGBM has the "
    "same columns; its rounds are chosen on one of the four parts and learned again from all."
)
COLUMNS = "; ".join(reranking.COLUMNS)
RERANKING = (
    "The hundred best labels of a retriever, before and re-ranked by metarank (`candidates=`, "
    f"`folds=`); then by LightGBM's LambdaRank on six obvious columns: {COLUMNS}. Scores "
    "and columns of training rows come from models that did not see the row's fold. *cost*: CPU time of "
    "the fit on all training rows and the ranking by that of the retriever (its fits without each fold "
    "and on all rows, and its answers)."
)
ONESELF = (
    "Questions of cooking.stackexchange with tags, the split of fastText's tutorial, raw texts. *Vote*: "
    "tags of the 40 nearest questions by the cosine of TF-IDF. *LinearSVC*: scikit-learn's one-vs-rest, "
    "defaults, on TF-IDF of words, pairs of words, and three to five letters."
)
INTRODUCTION = (
    "What metarank makes of lists that others propose, beside what else one would do with them. Its "
    "settings are the defaults; nothing is chosen on a test part. In per cent; CPU seconds of fit and "
    "ranking, of one thread."
)


def percent(values: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [f"{100 * values[name]:.1f}" if name in values else "-" for name in names]


def fusion(found: Figures, lines: Lines) -> str:
    names = ("nDCG@10", "nDCG@1000", "F1@5")
    published = lines.sets[YSO]["published"]
    rows = [[shown, *percent(published[name], names), "-"] for shown, name in PUBLISHED.items()]
    for name, values in found["rows"].items():
        rows.append([name, *percent(values, names), number(values["CPU s"]) if "CPU s" in values else "-"])
    of_training = {name: f"{100 * value:.1f}" for name, value in found["of training"].items()}
    text = FUSED.format(sizes=found["sizes"], weight=found["weight"], of_training=of_training)
    return f"{text}\n\n{table(['system', *names, 'CPU s'], rows)}"


def features(found: Figures, lines: Lines) -> str:
    rows = [[name, *percent(v, pairs.METRICS), f"{v['CPU s']:.1f}"] for name, v in found["rows"].items()]
    return f"{PAIRS.format(queries=found['queries'])}\n\n{table(['system', *pairs.METRICS, 'CPU s'], rows)}"


def page(lines: Lines) -> str:
    parts = ["# Candidates of others", INTRODUCTION]
    chapters: tuple[tuple[str, str, Callable[[Figures, Lines], str]], ...] = (
        ("Fusion on yso-en", YSO, fusion),
        ("Features of pairs: MQ2008", MQ2008, features),
    )
    for title, name, chapter in chapters:
        for line in (line for line in lines if line["set"] == name):
            parts += [f"## {title}", line.get("failed") or chapter(line, lines)]
    before_after, oneself = [], []
    for line in lines:
        name, failed = f"{line['set']}, {line['system']}", line.get("failed")
        if line["set"] in RERANKED:
            before_after.append([f"{name}: {failed}"] if failed else [name, *changed(line["rows"])])
        if line["set"] == COOKING:
            values = {} if failed else line["rows"][line["system"]]
            times = [number(values[key]) for key in ("fit s", "row ms") if values]
            oneself.append(
                [f"{name}: {failed}"] if failed else [line["system"], *percent(values, texts.METRICS), *times]
            )
    if before_after:
        columns = [*reranking.METRICS, "cost"]
        head = ["set, retriever", *columns, *(f"LightGBM {column}" for column in columns)]
        parts += ["## Re-ranking", RERANKING, table(head, before_after)]
    if oneself:
        head = ["system", *texts.METRICS, "fit s", "row ms"]
        parts += ["## What one would write oneself", ONESELF, table(head, oneself)]
    return "\n\n".join(parts)


def changed(rows: Mapping[str, Figures]) -> list[str]:
    """Before and after by metarank with its cost, and after by LightGBM with its own."""
    before, out = percent(rows["retriever"], reranking.METRICS), []
    for name in ("metarank", "LightGBM"):
        after = percent(rows[name], reranking.METRICS)
        out += [f"{b} -> {a}" for b, a in zip(before, after)] if name == "metarank" else after
        out.append(f"{rows[name]['CPU s'] / rows['retriever']['CPU s']:.1f}")
    return out


STUDY = Study(
    "fusion",
    (YSO, MQ2008, *RERANKED, COOKING),
    (
        System("fusion", "fusion.yso", sets=(YSO,)),
        System("pairs", "fusion.pairs", sets=(MQ2008,)),
        *RETRIEVERS,
        *(System(way, "fusion.texts", {"way": way}, sets=(COOKING,)) for way in WAYS),
    ),
    None,
    page,
    make={
        YSO: lambda folder: yso.make(DATA, folder),
        MQ2008: mq2008.make,
        COOKING: lambda folder: texts.make(DATA, folder),
    },
)
