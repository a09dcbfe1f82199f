"""`fit_model`: the order in which the stages of a model are fitted.

sources -> candidates -> meta-features -> ranker -> thresholds -> fits on all rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from numbers import Integral

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank._util.parameters import seed_of
from metarank._util.progress import as_part, note
from metarank.data.label_text import label_phrases
from metarank.data.word_order import name_forms
from metarank.model import auto
from metarank.model.auto import choose_features, choose_shortlister
from metarank.model.block_sources import over_blocks
from metarank.model.block_weights import weighed
from metarank.model.fitted import FittedModel
from metarank.model.given_sources import pairs_per_row, with_given
from metarank.model.inputs import TrainingInput, fold_map
from metarank.model.judge import Judged, judge
from metarank.model.memory import parse_budget, plan_fit
from metarank.model.parameters import FitOptions
from metarank.model.propensity_weight import weights_of_labels
from metarank.model.stages import LocalStages, RankedPairs
from metarank.model.training_lists import nests, pairs_to_rank, ranked_rows, sampled_rows, training_lists
from metarank.scorers.crossfit import n_outer_parts
from metarank.scorers.names.name_embedder import NameEmbedder
from metarank.scorers.neighbors.prior import LabelPrior, smoothed_shares
from metarank.scorers.objective import ObjectiveScorer
from metarank.scorers.sizes import FitSizes
from metarank.scorers.source import Source, describers, proposers, sources_of, with_scorers
from metarank.types.given import Given
from metarank.types.other_names import OtherNames
from metarank.types.view import TrainingSet, hidden_labels
from metarank.types.word_rows import NameForms


def fit_model(
    given: TrainingInput,
    options: FitOptions,
    at_work: Callable[[TrainingSet], AbstractContextManager[LocalStages]],
) -> FittedModel:
    """Fit every stage on the training rows.

    Parameters
    ----------
    given : TrainingInput
    options : FitOptions
    at_work : function of a TrainingSet
        Returns the stages in which sources and ranker are fitted, as a context of the fit.

    Raises
    ------
    ValueError, TypeError
        If a parameter does not suit the data, or the fit exceeds the memory budget.
    """
    given = weighed(given, options)
    names, label_text = texts_of_labels(given, options)
    sources = chosen_sources(given, label_text, options)
    given = with_word_order(given, sources)
    data = training_set(given, sources, names, label_text, options)
    rows = ranked_rows(data, sources, options)
    plan_memory(data, sources, rows, options)
    with at_work(data) as stages:
        with as_part("tuning", 0.01, 0.04):
            sources = tuned(sources, stages, options)
        with as_part("shortlisting", 0.05, 0.2):
            lists = training_lists(given, data, rows, sources, stages, options)
        with as_part("describing", 0.25, 0.35):
            columns = stages.describe(sources, lists.described, rows)
        with as_part("ranking", 0.6, 0.2):
            points = None
            if lists.points is not None:
                points = stages.rank_points(columns, lists.points, lists.described)
            found = stages.rank(columns, pairs_to_rank(given, lists, sources, options), sources)
        cascade = lists.cascade
        judged = judge(found, lists, stages, options, has_one_target=not given.labels.targets)
        del lists
        with as_part("fitting on all rows", 0.85, 0.15):
            sources = stages.fit_on_all(sources)
    return replace(_assembled(given, options, sources, found, judged), cascade=cascade, point_ranker=points)


def _assembled(
    given: TrainingInput, options: FitOptions, sources: list[Source], found: RankedPairs, judged: Judged
) -> FittedModel:
    labels, n = given.labels, given.n_rows
    return FittedModel(
        encoder=given.encoder,
        n_labels=given.n_labels,
        label_names=labels.names,
        labels=labels.table,
        label_separator=labels.separator,
        n_rows=n,
        row_names=given.row_names,
        text_columns=None if given.text_columns is None else list(given.text_columns),
        inv_propensity=weights_of_labels(labels.Y),
        prior=smoothed_shares(np.diff((labels.Y > 0).tocsc().indptr), n).astype(np.float32),
        objective_names=list(labels.targets) or None,
        sources=sources,
        standardizes=options.standardizes,
        feature_columns=found.feature_columns,
        raw_columns=found.raw_columns,
        ranker=found.ranker,
        thresholds=judged.thresholds,
        propensity_weight=judged.propensity_weight,
        random_state=options.seed,
        missing=judged.missing,
        feature_importances=found.importances,
        held_out_quality=judged.quality,
        unknown_by_share=True,
    )


# --- sources ---------------------------------------------------------------------


def texts_of_labels(
    given: TrainingInput, options: FitOptions
) -> tuple[tuple[Sequence[str] | None, Sequence[str] | None], sp.csr_matrix | None]:
    """Names and longer texts of the labels, if they carry meaning, and both as a matrix over X's words."""
    names: Sequence[str] | None = given.labels.names
    encoder, table, texts = given.encoder, given.labels.table, given.label_texts
    others = None if table is None else table.alternative_names
    if table is not None and table.has_names:
        names = table.names  # not the ids of labels without one
    if given.labels.are_ids:  # they say nothing of the labels
        names = None if texts is None and others is None else [""] * given.n_labels
    if isinstance(options.label_text, (list, tuple)):
        texts = list(options.label_text)
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"label_text must hold texts, got {options.label_text!r:.80}")
        if len(texts) != given.n_labels:
            raise ValueError(f"label_text must hold one text a label ({given.n_labels}), got {len(texts)}")
        if encoder.feature_words is None and not given.words:
            raise ValueError("label_text needs texts, or feature names that are words, to be compared with")
        names = names or [""] * given.n_labels
    elif options.label_text is None:
        names, texts = None, None
    rows = encoder.label_text(given.X, names, texts, given.words)
    if rows is None and names is not None and others is not None and encoder.feature_words is not None:
        known = len(OtherNames.of(others, encoder.rows_of_names))  # by them alone labels may be found
        rows = encoder.rows_of_names(names, texts) if known else None
    if options.label_text == "learned" and rows is None:
        if encoder.feature_words is None:
            raise ValueError("label_text='learned' needs texts, or feature names that are words")
        missing = "label_names" if names is None else "label_names of words that occur in the texts"
        raise ValueError(f"label_text='learned' needs {missing}")
    return (names, texts), rows


def chosen_sources(
    given: TrainingInput, label_text: sp.csr_matrix | None, options: FitOptions
) -> list[Source]:
    """The unfitted sources, seeded; if there are several objectives, also a copy for each."""
    own = _own_sources(given, label_text, options)
    sources = _seeded(
        with_given(
            own,
            given.pairs,
            given.candidates_mode,
            has_features=given.has_features,
            by_fold=given.fold is not None,
        )
    )
    shortlisters = proposers(sources)
    if options.label_text == "learned" and not any(isinstance(s.scorer, NameEmbedder) for s in sources):
        sources.append(Source(NameEmbedder(), proposes=bool(shortlisters), describes=True))
        note("label_text: names and what is learned of them, by NameEmbedder")
    if options.standardizes:
        sources = over_blocks(sources, given.encoder.blocks, given.encoder.joined_fields)
    described = describers(sources)
    sources += [
        Source(ObjectiveScorer(scorer=scorer, objective=name), proposes=False, describes=True)
        for name in given.labels.targets
        for scorer in described
        if not scorer.is_label_free and (scorer.is_quick or not shortlisters)
    ]
    if options.tune:
        sources = with_scorers(sources, [source.scorer.trying(options.tune) for source in sources])
        if not any(source.scorer.tune for source in sources):
            note("tune: no source has settings to try")
    return sources


def _own_sources(given: TrainingInput, label_text: sp.csr_matrix | None, options: FitOptions) -> list[Source]:
    """The sources that read the features of the rows; of rows without features, how frequent labels are."""
    X, n_labels = given.X, given.n_labels
    if not given.has_features:
        return [Source(LabelPrior(), proposes=False, describes=True)]
    shortlisters = choose_shortlister(
        options.shortlister,
        n_labels,
        label_text=label_text,
        n_rows=given.n_rows,
        n_terms=X.size if isinstance(X, np.ndarray) else int(X.nnz),
        rows_of_label=_rows_of_label(given.labels.Y),
        effort=options.effort,
        has_vectors=given.label_vectors is not None,
        is_sparse=sp.issparse(X),
        in_order=given.texts is not None,
    )
    scorers = choose_features(
        options.features,
        X,
        n_labels,
        label_text=label_text,
        effort=options.effort,
        shortlisters=shortlisters,
        has_vectors=given.label_vectors is not None,
        dense_columns=sum(block.stop - block.start for block in given.encoder.blocks if block.is_dense),
    )
    return sources_of(shortlisters, scorers)


def _rows_of_label(Y: sp.csr_matrix) -> float:
    """The mean number of rows of the labels that have any."""
    counts = np.bincount(Y.indices[Y.data > 0], minlength=Y.shape[1])
    return float(counts.sum() / max(1, np.count_nonzero(counts)))


def _seeded(sources: list[Source]) -> list[Source]:
    """The sources with a fixed seed for all their fits, which is drawn if theirs is not an integer."""
    out = []
    for source in sources:
        wanted = source.scorer.get_params(deep=False).get("random_state", 0)
        if not isinstance(wanted, Integral):
            seed = seed_of(wanted)
            source = replace(source, scorer=clone(source.scorer).set_params(random_state=seed))
            note(f"random_state of {source.name}: {seed}, drawn")
        out.append(source)
    return out


def tuned(sources: list[Source], stages: LocalStages, options: FitOptions) -> list[Source]:
    """The sources with free parameters tuned once on all rows, for all folds."""
    if not options.standardizes:
        describers(sources)[0].set_params(k=stages.tuned_k())
    return stages.tune(sources)


# --- training rows ---------------------------------------------------------------


def training_set(
    given: TrainingInput,
    sources: list[Source],
    texts: tuple[Sequence[str] | None, Sequence[str] | None],
    label_text: sp.csr_matrix | None,
    options: FitOptions,
) -> TrainingSet:
    """The rows, labels and texts that the sources learn from."""
    names, encoder = texts[0], given.encoder
    spelled = any(source.scorer.source == "label_spelling" for source in sources)
    # If labels are shortlisted, many have no row outside a fold anyway.
    hiding = not proposers(sources) and any(scorer.reads_names for scorer in describers(sources))
    fold = fold_map(given, options)
    _tell_of_folds(given, fold, options)
    return TrainingSet(
        given.X,
        given.labels.Y,
        fold,
        seed=options.seed,
        label_names=given.labels.names,
        label_text=label_text,
        label_spelling=encoder.label_spelling(*texts) if spelled else None,
        other_names=other_names(given, label_text, spelled),
        label_vectors=given.label_vectors,
        label_phrases=None if names is None else label_phrases(names, texts[1]),
        words=encoder.feature_words,
        feature_scale=encoder.transform.scale,
        targets=given.labels.targets,
        blocks=encoder.blocks,
        hidden_in=hidden_labels(given.n_labels, int(fold.max()) + 1, options.seed) if hiding else None,
        groups=given.groups,
        given=given.pairs,
        name_forms=_name_forms(given, texts, sources),
    )


def with_word_order(given: TrainingInput, sources: list[Source]) -> TrainingInput:
    """The training input with the words of its texts in their order, if a source looks at them."""
    readers = [source.scorer for source in sources if source.scorer.reads_word_order]
    if not readers:
        return given
    if given.texts is None or given.encoder.vectorizer is None:
        raise ValueError(f"X must be texts for {type(readers[0]).__name__}, which looks for names in them")
    words = given.encoder.vectorizer.in_order(given.texts)
    pairs = given.pairs or Given(given.n_rows, given.n_labels)
    return replace(given, pairs=replace(pairs, words=words))


def _name_forms(
    given: TrainingInput,
    texts: tuple[Sequence[str] | None, Sequence[str] | None],
    sources: list[Source],
) -> NameForms | None:
    """The ways in which the labels are written, if a source looks for them in texts: by their names, or by
    their text where there is no name."""
    if not any(source.scorer.reads_word_order for source in sources):
        return None
    table, vectorizer, (names, longer) = given.labels.table, given.encoder.vectorizer, texts
    if names is not None and longer is not None:
        names = [name if name.strip() else text or "" for name, text in zip(names, longer)]
    if names is None or vectorizer is None:
        raise ValueError("the labels must have names for NameMentions, which looks for them in texts")
    return name_forms(names, None if table is None else table.alternative_names, vectorizer.language_)


def _tell_of_folds(given: TrainingInput, fold: np.ndarray, options: FitOptions) -> None:
    n_folds = int(fold.max()) + 1
    if given.fold is not None:
        note(f"folds: {n_folds}, those of candidates_fold")
    elif given.groups is not None:
        fewer = f", fewer than n_folds={options.n_folds}" if n_folds < options.n_folds else ""
        note(
            f"folds: {n_folds}{fewer}, each of whole groups, of which there are {int(given.groups.max()) + 1}"
        )


def other_names(
    given: TrainingInput, label_text: sp.csr_matrix | None, spelled: bool
) -> dict[str, OtherNames]:
    """The alternative names of the labels over X's words, where the sources look at names."""
    table = given.labels.table
    if label_text is None or table is None or table.alternative_names is None:
        return {}
    rows = {"label_text": given.encoder.rows_of_names}
    rows |= {"label_spelling": given.encoder.rows_of_spellings} if spelled else {}
    found = {source: OtherNames.of(table.alternative_names, rows_of) for source, rows_of in rows.items()}
    return {source: names for source, names in found.items() if len(names)}


def plan_memory(data: TrainingSet, sources: list[Source], rows: np.ndarray, options: FitOptions) -> None:
    """Estimate the memory of the fit and adapt it to the budget."""
    if options.every_pair:  # pairs that stay with the workers are no part of what this process holds
        rows = sampled_rows(data, sources, options)
    proposing = len(proposers(sources))
    sizes = FitSizes(
        data.X,
        data.Y,
        ranked_rows=len(rows),
        pairs_per_row=pairs_per_row(data, sources, options.shortlist_size),
        n_folds=data.n_folds,
        used_folds=len(np.unique(data.fold[rows])),
        n_jobs=options.n_jobs,
    )
    if options.labelwise:
        sizes = replace(sizes, point_pairs=min(auto.POINT_PAIRS, sizes.n_pairs))
    if nests(data, len(rows), sizes.n_pairs, bool(proposing), options.effort):
        sizes = replace(sizes, n_tables=n_outer_parts(data.fold) - 1)
    plan = plan_fit(sizes, sources, parse_budget(options.memory_budget))
    data.chunk_pairs, data.keeps_products = plan.chunk_pairs, plan.keeps_products
