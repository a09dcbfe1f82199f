"""The sources of a fit: the model's own, those of what is given, of each block, and of each objective."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank._util.parameters import seed_of
from metarank._util.progress import note
from metarank.model.fitting.auto import Sizes, choose_features, choose_shortlister, is_auto
from metarank.model.fitting.inputs import TrainingInput
from metarank.ranker.auto_ranker import list_quality
from metarank.ranker.base import cross_fit_scores
from metarank.ranker.linear_ranker import LinearRanker
from metarank.ranker.lists import RankingData, drawn
from metarank.scorers.base import LabelScorer
from metarank.scorers.crossfit import held_out_columns
from metarank.scorers.given.given_scorer import GivenScorer
from metarank.scorers.given.linear import GivenLinear
from metarank.scorers.given.pairs import GivenTogether, PairFeatures
from metarank.scorers.linear.one_vs_all import OneVsAll
from metarank.scorers.neighbors.centroids import Centroids
from metarank.scorers.neighbors.prior import LabelPrior
from metarank.scorers.neighbors.voting import LabelNeighbors
from metarank.scorers.source import Source, describers, proposers, sources_of
from metarank.scorers.wrapped import BlockScorer, ObjectiveScorer
from metarank.types.block_columns import BUT_VECTORS, BlockColumns, with_rest
from metarank.types.candidates import Candidates
from metarank.types.feature_table import FeatureTable
from metarank.types.view import TrainingSet

# With more rows, classifiers of rows by their candidates cost more than all else.
_MOST_ROWS = 20_000


def with_given(of_model: list[Source], given: TrainingInput) -> list[Source]:
    """The sources of a fit: its own and, if candidates or features of pairs are given, a source for each.

    By the mode "only" the candidates given are the only ones, and the model's own sources describe alone.
    Rows without features are described by their candidates, and by the mode "union" labels are proposed so.
    """
    pairs, has_features, by_fold = given.pairs, given.has_features, given.fold is not None
    if pairs is None:
        return of_model
    alone = given.candidates_mode == "only" and bool(pairs.scores)
    if alone:
        note(f"candidates: those given by {', '.join(pairs.scores)}, and no others")
    elif pairs.scores:
        note(f"candidates: those given by {', '.join(pairs.scores)}, and those that the model finds")
    # Where all labels are ranked, nothing needs to be proposed.
    proposes = alone or bool(proposers(of_model)) or not has_features
    sources = [
        replace(source, proposes=source.proposes and not alone)
        for source in of_model
        if source.describes or not alone
    ]
    sources += [
        Source(GivenScorer(given=name, by_fold=by_fold), proposes, describes=True) for name in pairs.scores
    ]
    if len(pairs.scores) > 1:
        sources.append(Source(GivenTogether(given=list(pairs.scores)), proposes=False, describes=True))
    if not has_features and (not alone or (pairs.n_rows <= _MOST_ROWS and not by_fold)):
        sources.append(Source(GivenLinear(given=list(pairs.scores)), proposes=not alone, describes=True))
    if pairs.features:
        sources.append(Source(PairFeatures(names=tuple(pairs.features)), proposes=False, describes=True))
    return sources


def pairs_per_row(data: TrainingSet, sources: list[Source], size: int) -> int:
    """The number of candidates of a training row: `size` for each source of the model's own, and the mean
    number that are given; all labels if no source proposes."""
    n, n_labels = data.Y.shape
    n_proposers = sum(not scorer.proposes_given for scorer in proposers(sources))
    names = [name for scorer in proposers(sources) for name in scorer.given_read()[0]]
    stored = 0 if data.given is None else sum(data.given.scores[name].nnz for name in names)
    return min(n_labels, size * n_proposers + -(-stored // max(1, n))) or n_labels


# Fewer numbers say too little for rows to be near each other.
_LEAST_NUMBERS = 3


def over_blocks(
    sources: list[Source], blocks: Sequence[BlockColumns], fields: Collection[str] = ()
) -> list[Source]:
    """The sources, those that describe each block by itself once for every block that suits them.

    `fields` are blocks of texts whose words another block joins: they describe what that block proposes, and
    propose nothing of their own, which would cost more than it finds.
    """
    if len(blocks) < 2:
        return sources
    out = []
    for source in sources:
        by_block = [
            block.name
            for block in blocks
            if source.scorer.by_block
            and _suits(source.scorer, block)
            and (block.name not in fields or source.scorer.needs_words or source.scorer.suits_any_block)
        ]
        of_blocks = [
            replace(
                source,
                scorer=BlockScorer(scorer=clone(source.scorer), block=name),
                proposes=source.proposes and name not in fields,
            )
            for name in by_block
        ]
        out += [one for one in of_blocks if one.proposes or one.describes] or [source]
    return out


def apart_from_vectors(sources: list[Source], blocks: Sequence[BlockColumns]) -> list[Source]:
    """The sources: classifiers see all blocks but those of vectors, and each of these has a ridge of its own.

    Joined, a vector of little worth costs more than it tells: its weight beside words is one for all labels,
    and a classifier spreads over its columns what few words say. Apart, the ranker learns what each is worth.
    """
    vectors = [block.name for block in blocks if block.kind == "vector"]
    classifiers = [
        source for source in sources if source.scorer.is_classifier and not source.scorer.reads_given
    ]
    if not (vectors and classifiers) or BUT_VECTORS not in (block.name for block in blocks):
        return sources
    out = [
        replace(source, scorer=BlockScorer(scorer=source.scorer, block=BUT_VECTORS))
        if source in classifiers
        else source
        for source in sources
    ]
    proposes = bool(proposers(sources))
    for name in vectors:
        ridge = BlockScorer(scorer=OneVsAll(loss="ridge"), block=name)
        out.append(Source(ridge, proposes=proposes, describes=True))
    return out


def _suits(scorer: LabelScorer, block: BlockColumns) -> bool:
    if scorer.needs_words or block.words is not None:
        return block.words is not None
    return (
        scorer.suits_any_block
        or block.kind in ("vector", "sparse")
        or (block.kind == "numbers" and block.stop - block.start >= _LEAST_NUMBERS)
    )


GRID = tuple(range(10, 101, 10))
_L2 = 0.01
_MAX_PAIRS = 100_000


def tuned_k(data: TrainingSet, *, n_jobs: int = 1) -> int:
    """The k from 10 to 100 whose 3k + 2 columns let ListNet rank held-out rows best (Yang & Gopal 2012, 3.4).

    The distances to the 100 nearest points are computed once; a smaller k uses the first of them. Quality is
    measured as in `AutoRanker`, over the folds of the fit. Ties go to the smaller k.
    """
    n, n_labels = data.Y.shape
    rows = drawn(n, max(50, _MAX_PAIRS // max(1, n_labels)), data.seed)
    candidates = Candidates.all_labels(len(rows), n_labels)
    near = LabelNeighbors(k=GRID[-1], columns="raw")
    columns = held_out_columns(near, data, candidates, rows=rows, n_jobs=n_jobs)
    columns |= held_out_columns(Centroids(), data, candidates, rows=rows, n_jobs=n_jobs)
    gains = data.Y[rows].toarray().astype(np.float32).ravel()
    if len(np.unique(data.fold[rows])) < 2:
        return GRID[0]

    quality = {}
    for k in GRID:
        farther = {*near.names} - {*LabelNeighbors(k=k, columns="raw").names}
        names = [name for name in columns if name not in farther]
        table = FeatureTable(np.column_stack([columns[n] for n in names]), names, candidates)
        lists = RankingData.checked(table, gains, None, data.fold[rows], data.seed)
        scores = cross_fit_scores(LinearRanker(loss="listnet", l2=_L2), lists, n_jobs)
        quality[k] = float(np.sum(list_quality(scores, lists, n_jobs)))
    best = max(GRID, key=lambda k: quality[k])
    note(f"features: k = {best}, chosen by cross-validation")
    return best


def chosen_sources(given: TrainingInput, label_text: sp.csr_matrix | None) -> list[Source]:
    """The unfitted sources, seeded; if there are several objectives, also a copy for each."""
    of_model = _own_sources(given, label_text is not None)
    sources = _seeded(with_given(of_model, given))
    shortlisters = proposers(sources)
    if given.options.standardizes:
        sources = over_blocks(sources, given.encoder.blocks, given.encoder.joined_fields)
        if is_auto(given.options.features) and is_auto(given.options.shortlister):
            sources = apart_from_vectors(sources, with_rest(given.encoder.blocks))
    described = describers(sources)
    sources += [
        Source(ObjectiveScorer(scorer=scorer, objective=name), proposes=False, describes=True)
        for name in given.labels.targets
        for scorer in described
        if not scorer.is_label_free and (scorer.is_quick or not shortlisters)
    ]
    return sources


def _own_sources(given: TrainingInput, has_names: bool) -> list[Source]:
    """The sources that read the features of the rows; of rows without features, how frequent labels are."""
    X, Y, options = given.X, given.labels.Y, given.options
    if not given.has_features:
        return [Source(LabelPrior(), proposes=False, describes=True)]
    counts = np.bincount(Y.indices[Y.data > 0], minlength=Y.shape[1])
    sizes = Sizes(
        given.n_rows,
        given.n_labels,
        is_sparse=sp.issparse(X),
        n_terms=X.size if isinstance(X, np.ndarray) else int(X.nnz),
        rows_of_label=float(counts.sum() / max(1, np.count_nonzero(counts))),
        dense_columns=sum(block.stop - block.start for block in given.encoder.blocks if block.is_dense),
        has_names=has_names,
        has_vectors=given.label_vectors is not None,
        in_order=given.texts is not None,
    )
    shortlisters = choose_shortlister(options.shortlister, sizes, options.effort)
    return sources_of(shortlisters, choose_features(options.features, sizes, options.effort, shortlisters))


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
