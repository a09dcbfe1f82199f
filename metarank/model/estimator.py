"""`MetaRanker`: the estimator.

The methods say what they do; the work is done by the modules of this folder. `fit` has the order in
which the stages of a model are fitted, `answer` the order in which they answer. What a fit learns is a
`FittedModel`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Unpack, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from metarank._util.modules import outside
from metarank._util.parameters import RandomState, as_fitted, check_real, one_target, remembered, seed_of
from metarank._util.progress import note, report, shows_progress, taking_notes
from metarank._util.threads import resolve_n_jobs, single_threaded_blas
from metarank.data.block_encoder import BlocksEncoder
from metarank.data.dataset import Dataset
from metarank.model.about import card_of, facts_of
from metarank.model.answering.answer import (
    Answering,
    Answers,
    Limits,
    Request,
    names_in_order,
    ranking_of,
    read_request,
)
from metarank.model.answering.explain import Explanation, explain_row, one_row
from metarank.model.answering.measure import score_model
from metarank.model.best_points import best_points
from metarank.model.changes import changed_labels, checked_change, judged_pairs, with_more_rows
from metarank.model.fitted import FittedModel, Learned, Scored
from metarank.model.fitting.auto import FitOptions, check_parameters, plain
from metarank.model.fitting.fit import fit_model
from metarank.model.fitting.inputs import FitArguments, read_training
from metarank.model.fitting.stages import LocalStages
from metarank.model.fitting.without_rows import fit_without_rows
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.persist.fields import Object, Params
from metarank.persist.savable import Savable
from metarank.persist.spec import Spec
from metarank.ranker import Ranker
from metarank.scorers.base import LabelScorer
from metarank.thresholds.costs import Costs
from metarank.thresholds.guarantees import parse_wish
from metarank.thresholds.set_sizes import ANY_SIZE, SetSizes
from metarank.types.ranking import Ranking, check_k, row_index
from metarank.types.suggested import MissingLabel, ReviewPair, check_goal, review_pairs
from metarank.types.view import TrainingSet


@dataclass(eq=False, repr=False)
class MetaRanker(Learned, Savable):
    """Rank the labels of an instance and decide how many of them to keep.

    Each pair (instance, label) becomes a document described by meta-features (Yang & Gopal 2012). A
    learning-to-rank model orders the pairs, and learned thresholds decide which labels are kept. The
    meta-features of a training row are computed without the labels of its fold.

    Parameters
    ----------
    shortlister : "auto", name, LabelScorer, list of names and LabelScorers, or None
        The sources that propose candidate labels: "neighbors", "names", "spelling", "mentions",
        "label-vectors", "two-sided", "tail", "parabel", "xreg", "fastxml", "pfastxml", "pfastrexml",
        "one-vs-all". "auto" ranks all labels if there are at most 1,000, or 100 for sparse
        rows (`metarank.model.fitting.auto`); None always ranks all.
    features : "auto", "yang2012", or list of names and LabelScorers
        The sources that describe a pair. "yang2012" gives the 3k + 2 columns of the paper, k by
        cross-validation.
    ranker : "auto", the name of a ranker, or a Ranker
        "ensemble", "lambdarank", "xendcg", "binary", "pointwise", "listwise", "logistic", "listnet",
        "ranksvm" or "svmmap". "auto" decides by the number of pairs and by cross-validation.
    threshold : "auto" or the name of a family of thresholds
        "auto" chooses the family by cross-validation, separately for each metric.
    encoder : None, name, path, `metarank.Encoder`, or object with ``encode(list of str) -> (n, d)``
        A pretrained encoder of texts, from sentence-transformers or model2vec: rows and labels are compared
        by their meaning as well as by their words. X must hold texts.
    language : "auto", None, "english", "en", ...
        Words of texts and of label names are stemmed in this language. "auto" detects the language of the
        texts, and stems if most texts share one. None does not stem.
    names : bool
        Whether names and descriptions of the labels are compared with the words of the rows.
    propensity_weight : float in [0, 10] or "auto"
        The rare-label boost: `a` in log-odds + a log(1/p_l), with the propensity p_l of Jain et al. (2016),
        eq. 1; 0 ranks by probability. "auto" is 0 if all labels are ranked, otherwise the weight of greatest
        out-of-fold PSP@5 among those that cost at most 1 % of nDCG@5. `fit` always learns it, for
        `rank(propensity_weight="auto")`. Label sets do not depend on it.
    shortlist_size : int
        Candidates that each shortlister proposes for a row.
    n_folds : int
        Number of folds K >= 2. Scorers without a closed form are fitted K times on (K - 1) / K of the rows.
    effort : "low" or "medium"
        "low" leaves out the base classifiers, the shortlisters of "auto" except neighbours, names and label
        vectors, and (without given candidates) the choice of a ranker, which is trained on fewer rows.
    labelwise : bool
        Whether to learn a second ranker, which orders the rows of each label; see `rank_points`.
    n_jobs : int or None
        Threads for all stages. None and -1 mean all cores, -2 all but one. Results do not depend on it.
    random_state : int, None, RandomState or Generator
        The same seed and data give the same bytes. None draws a fresh seed.
    verbose : int
        1 shows the progress of `fit`. The logger "metarank" logs the stages in any case.

    Attributes
    ----------
    n_features_in_, n_labels_, n_rows_ : int
        The number of training rows is 0 where no row has labels.
    classes_ : array (L,) of names, or of 0 .. L-1
    label_names_ : list of str or None; label_table_ : LabelTable; labels_ : LabelDescriptions or None
        The names; names and ids; descriptions, parents and so on. Removed labels are included.
    label_separator_, text_columns_ : how labels and texts of files are read
    removed_ : int32 array of the ids of removed labels
    sources_ : list of Source; scorers_, shortlisters_ : lists of LabelScorer
        The fitted sources: those that describe pairs, in the order of the columns, and those that propose.
    ranker_, thresholds_ : fitted Ranker and LearnedThresholds
    feature_columns_ : list of str; feature_importances_ : float64 array (F,)
        The meta-features, and the share of each in the mean absolute contributions to the score.
    held_out_quality_ : dict of str to (value, low, high)
        Held-out estimates of P@1, P@5, nDCG@5, MAP and metrics of label sets on new rows, with 95 %
        intervals, measured on training rows that the model did not see. Macro-F1 is over the labels of these
        rows. `choices_` has the number of rows, and the share of their labels that have no row in another
        fold. The estimates do not change when labels or rows are added.
    choices_ : list of str
        What "auto" and cross-validation chose, and why, one line each.
    inv_propensity_ : float64 array (L,)
    random_state_ : int; propensity_weight_, tuned_weight_ : float
        The seed of the fit, the weight that `rank` uses by default, and that of "auto".

    Examples
    --------
    >>> from metarank import MetaRanker, data
    >>> train = data.make_multilabel(200, n_features=10, n_labels=4, seed=0)
    >>> model = MetaRanker(effort="low", n_jobs=1).fit(train)
    >>> model.rank(train.X[:2], k=3).labels.shape
    (2, 3)
    """

    shortlister: str | LabelScorer | Sequence[str | LabelScorer] | None = "auto"
    features: str | Sequence[str | LabelScorer] = "auto"
    ranker: str | Ranker = "auto"
    threshold: str = "auto"
    encoder: Any = None
    language: str | None = "auto"
    names: bool = True
    propensity_weight: float | Literal["auto"] = 0.0
    shortlist_size: int = 50
    n_folds: int = 5
    effort: Literal["low", "medium"] = "medium"
    labelwise: bool = False
    n_jobs: int | None = None
    random_state: RandomState = 0
    verbose: int = 0

    _tags: ClassVar[Sequence[str]] = ("learning-to-rank", "multi-label-classification")
    saved: ClassVar[Spec] = Spec(
        Params(
            of=lambda model: model._saved_parameters(),
            check=lambda model: model._check_parameters(),
        ),
        Object("fitted_", FittedModel),
    )

    # --- fit ---------------------------------------------------------------

    @shows_progress
    def fit(
        self,
        X: Any = None,
        Y: Any = None,
        *,
        y: Any = None,
        sample_weight: Any = None,
        exclude: Any = None,
        objectives: str | MultiObjectiveRanker | None = None,
        n_labels: int | None = None,
        groups: Any = None,
        candidates: Any = None,
        candidates_mode: str = "only",
        folds: Any = None,
        labels: Any = None,
        pair_features: Any = None,
        negatives: Any = None,
    ) -> MetaRanker:
        """Learn from instances and their labels, or from several targets of each pair at once.

        With `labels` and no Y, there are no training rows: labels are ranked by their meaning (`encoder`) and
        their names, with fixed weights (`metarank.model.fitting.without_rows`). Scores then order labels but
        are not probabilities; methods that need these raise a ValueError. X, if given, holds texts like those
        to be ranked, for word frequencies. Parameters of learned parts take effect with `partial_fit`.

        Raises a ValueError or TypeError that names an invalid input or parameter.

        Parameters
        ----------
        X : array-like or sparse (n, d), data frame, list of n texts, dict of blocks, or Dataset
            A dict of names to texts, vectors (n, d), numbers, categories or sparse features, or a data frame
            with columns that are not numeric, holds blocks; see `metarank.data.Blocks.of`. None if candidates
            are given, or `labels` alone.
        Y : (n, L) indicator or grades (dense or sparse), a list of n lists of labels, or n classes
            Relevance >= 0; relevant means > 0. Omit it if X is a Dataset. Integers in lists are names, in
            order of value, unless `n_labels` is given. A dict by objective ("relevance", "engagement", ...)
            holds several targets of the same labels; one ranking serves all of them.
        y : the name of Y in scikit-learn; pass one of the two
        sample_weight : array (n,), optional
            Non-negative weight of each row in the ranker.
        exclude : CSR (n, L), list of n lists of labels, or one list for all rows, optional
            Labels, as ids or names, that must not be candidates of a row.
        objectives : str or MultiObjectiveRanker, optional
            How several targets become one ranking: "label" (default), "loss", "plug-in-label", ..., or an
            unfitted `MultiObjectiveRanker`.
        n_labels : int, optional
            L. Integers in lists are then label ids in [0, L).
        groups : array-like (n,) of integers or texts, optional
            Rows with the same value stay on the same side of every split.
        folds : int array (n,), optional
            The fold of each row, instead of `n_folds` random ones; with `candidates`, the fold that was left
            out when the scores of the row were made.
        candidates : dict of source name to candidates, or the candidates of one source, optional
            Candidates from your own retriever, with scores that become evidence: CSR of scores (n, L), whose
            stored entries count; `Candidates`; a list with, for each row, (label, score) pairs, a dict of
            label to score, or labels, best first; or a table with the columns row, label, score and source.
            Later calls need candidates of the same sources. Scores from a model that was trained on the same
            rows are data leakage: make them without the row's fold (`folds`).
        candidates_mode : "only" or "union"
            "only" ranks the given candidates; `shortlister` is then "auto". "union" also ranks the proposals
            of the model's shortlisters.
        pair_features : dict of name to values of pairs, or the values of one feature, optional
            More evidence for pairs, in the same forms. It does not propose candidates.
        labels : list of names, LabelDescriptions, data frame, path of a file, or list of dicts, optional
            Names, alternative names, descriptions, parents and related labels; see
            `metarank.data.read_labels`. All labels of the table can be ranked, even without a training row.
        negatives : CSR (n, L), `Candidates`, or list of n lists of labels, optional
            Labels that a person rejected for a row. All other pairs without a label are then unjudged; the
            share of them that is relevant is estimated from rows with rejections, see
            `metarank.model.fitting.unjudged`. Not for several objectives.
        """
        Y = one_target(Y, y)
        n_jobs = self._check_parameters()
        params = self.get_params(deep=False)
        options = FitOptions.of(params, seed_of(self.random_state), n_jobs)
        asked = FitArguments(
            sample_weight=sample_weight,
            exclude=exclude,
            objectives=objectives,
            n_labels=n_labels,
            groups=groups,
            candidates=candidates,
            candidates_mode=candidates_mode,
            folds=folds,
            labels=labels,
            pair_features=pair_features,
            negatives=negatives,
        )
        with single_threaded_blas(), taking_notes() as notes:
            report("reading", 0.0)
            if not isinstance(self.random_state, Integral):
                note(f"random_state: {options.seed}, drawn; it repeats this fit")
            given = read_training(X, Y, asked, options)
            if given.labels.Y.nnz:
                fitted = fit_model(given, lambda data: self._at_work(data, n_jobs))
            else:
                fitted = fit_without_rows(given)
        # Only now: a fit that fails or is interrupted leaves the model as it was.
        self.fitted_: FittedModel = replace(fitted, choices=notes)
        self._given_ = remembered(plain(params))
        report("done", 1.0)
        return self

    @contextmanager
    def _at_work(self, data: TrainingSet, n_jobs: int) -> Iterator[LocalStages]:
        """Where sources and ranker are fitted."""
        yield LocalStages(data, n_jobs)

    def _check_parameters(self) -> int:
        """`check_parameters`."""
        return check_parameters(self.get_params(deep=False))

    def _saved_parameters(self) -> dict[str, Any]:
        """The parameters of the fit as plain values, including the seed."""
        params = as_fitted(self.get_params(deep=False), getattr(self, "_given_", {}))
        return plain(params) | {"random_state": self.random_state_}

    # --- changes of labels and rows -------------------------------------------

    def update_labels(
        self, *, add: Any = None, remove: Any = None, rename: Any = None, merge: Any = None
    ) -> MetaRanker:
        """Change the label set without a new fit. Nothing changes on an error. Not safe during other calls.

        Ids do not change: new labels are appended, and a removed label keeps its id, but is not proposed
        again unless a label with its name is added. Sources that are sums or lists of training rows become
        equal to those of a fit on the changed rows. Trees, classifiers, ranker, thresholds and calibration do
        not change: a merged label gets the maximum of the scores, and a label that trees do not know gets
        their lowest score of the row. A new label is found by the known words of its name, and by its rows
        after `partial_fit`.

        Raises a ValueError or TypeError that names a label that is unknown, removed, or in two changes at
        once, or a name in use. Models of several objectives, or without neighbours, cannot change.

        Parameters
        ----------
        add : list of names, dict of name to text, or what `metarank.data.read_labels` takes, optional
            The latter for a model with a table of labels. If the labels have no names: their number.
        remove : list of ids or names, optional
        rename : dict of id or name to name or (name, text), optional
        merge : dict of id or name to id or name, optional
            The rows of the key become rows of the value, and the key is removed.
        """
        self._check_is_fitted()
        change = checked_change(self.fitted_, add, remove, rename, merge)
        with single_threaded_blas():
            self.fitted_ = changed_labels(self.fitted_, change, resolve_n_jobs(self.n_jobs))
        return self

    def partial_fit(self, X: Any, Y: Any = None, *, y: Any = None) -> MetaRanker:
        """Add training rows without a new fit, as `update_labels` changes labels. An unfitted one is fitted.

        A model without training rows is fitted on these as by ``fit(X, Y, labels=...)`` with its table of
        labels, to the same bytes; the texts of its first fit have no effect. For any other model, all labels
        must be known to it. Grades count as relevant if > 0. Raises like `update_labels`.
        """
        Y = one_target(Y, y)
        if "fitted_" not in vars(self):
            return self.fit(X, Y)
        if not self.n_rows_:
            return self._first_rows(X, Y)
        with single_threaded_blas():
            self.fitted_ = with_more_rows(self.fitted_, X, Y, resolve_n_jobs(self.n_jobs))
        return self

    def _first_rows(self, X: Any, Y: Any) -> MetaRanker:
        """An ordinary fit with the labels, and the encoder, of a model that has no rows yet."""
        new = clone(self).set_params(encoder=getattr(self.encoder_, "meaning", None))
        self.fitted_ = new.fit(X, Y, labels=self.labels_).fitted_
        return self

    # --- prediction ----------------------------------------------------------

    def rank(
        self,
        X: Any,
        k: int = 10,
        candidates: Any = None,
        *,
        exclude: Any = None,
        allowed: Any = None,
        propensity_weight: float | str | None = None,
        objective_weights: Any = None,
        pair_features: Any = None,
        known: Any = None,
    ) -> Ranking:
        """The k best labels of each row, best first.

        Parameters
        ----------
        X : as in `fit`
        k : int
            Number of labels per row, at most L. Rows with fewer candidates are padded with -1.
        candidates : Candidates, CSR (n, L), list of n lists of labels, or one list for all rows, optional
            After a fit with candidates: those of the same sources. After any other fit: your shortlist, which
            replaces the model's. Its scores are not used: a CSR with unequal values is an error. Integers are
            ids, texts are names.
        exclude : as in `fit`
        allowed : CSR (n, L), list of n lists of labels, or one list for all rows, optional
            The only labels that may be ranked, except those in `exclude`. A shortlist with too few of them
            is completed with the most frequent others.
        propensity_weight : float in [0, 10] or "auto", optional
            Rare-label boost instead of `propensity_weight_`; 0 ranks by probability, "auto" is
            `tuned_weight_`.
        objective_weights : array-like (K,) or dict of names to weights, optional
            Weights of the objectives instead of those of the fit, after a fit with a plug-in.
        pair_features : as in `fit`, after a fit with them
        known : as `exclude`, optional
            Labels you already know. They are excluded, and change the scores of others by how often training
            rows have both (`metarank.model.known_labels`). Needs a fit with effort "medium" or more,
            neighbours among its sources, and 50 rows with two labels.

        Returns
        -------
        Ranking
            Equal scores are in order of label id. Rows without evidence (`without_evidence`: texts without
            known words, sparse rows of zeros) get the labels in order of frequency.
        """
        self._check_is_fitted()
        k = min(check_k(k), self.n_labels_)
        limits = Limits(exclude=exclude, allowed=allowed, candidates=candidates)
        limits |= Limits(pair_features=pair_features, known=known)
        scored = self._score_rows(X, k, propensity_weight, objective_weights, **limits)
        ranking, index = ranking_of(scored, k, self.label_table_, self.n_jobs), row_index(X)
        return ranking if index is None else replace(ranking, index=index)

    def rank_points(self, X: Any, k: int = 10, **limits: Unpack[Limits]) -> Ranking:
        """The k best rows of X for each label, best first, such as the users to recommend an item to.

        After a fit with ``labelwise=True`` a ranker orders the rows of each label; candidates are the
        `shortlist_size` best rows (or k) by each source. Scores depend on the rows that are ranked together,
        and are not comparable between labels. Any other model orders by `predict_proba`. Arguments are those
        of `rank` except `known`.

        Returns
        -------
        Ranking
            ``labels[l]`` holds the numbers of the rows for label l, ``scores[l]`` their scores, both (L, k),
            ties by row. To evaluate it: ``metrics.evaluate(Y.T, ranking, ["nDCG@5"])``.
        """
        k, answering = check_k(k), self.answering()
        return best_points(answering, read_request(self.fitted_, X, **limits), k)

    def decision_function(
        self, X: Any, *, propensity_weight: float | str | None = None, **limits: Unpack[Limits]
    ) -> NDArray[np.float32]:
        """Ranking scores, float32 (n, L): those of `rank` with the same arguments.

        Labels that are not candidates of a row get its lowest score minus 1.
        """
        scored = self._score_rows(X, 1, propensity_weight, **limits)
        return np.concatenate([s.candidates.to_dense(s.scores) for s in scored])

    def predict_proba(self, X: Any, **limits: Unpack[Limits]) -> NDArray[np.float32] | sp.csr_matrix:
        """Calibrated probabilities of relevance: float32 (n, L), or CSR (n, L) of the candidates if labels
        are shortlisted. 0 for labels that are excluded, not allowed, or not candidates. They never increase
        along a ranking without rare-label boost: neighbours that would, share their mean. In rows without
        evidence they are the labels' shares of training rows.
        """
        scored = self._score_rows(X, **limits)
        out = self.fitted_.probability_matrix(scored)
        return out if self.shortlisters_ else out.toarray()

    def predict(
        self,
        X: Any,
        optimize: Any = None,
        *,
        return_names: bool = False,
        at_least: int = 0,
        at_most: int | None = None,
        return_quality: bool = False,
        **limits: Unpack[Limits],
    ) -> Any:
        """Label sets, CSR (n, L) of 0/1, by the learned thresholds; empty in rows without evidence.

        The attributes `label_names` and `label_ids` of the matrix hold those of its columns, or None.

        Parameters
        ----------
        X, exclude, allowed, candidates, pair_features, known : as in `rank`
        optimize : "micro-f1" (default), "macro-f1", "example-f1", "hamming", "subset-accuracy", ...
            `fit` learns thresholds for all of these metrics. The guarantees "recall>=0.9" and
            "precision>=0.8" (any level) hold for rows like the training rows with confidence 0.9; see
            `ThresholdLearner`. One that cannot be kept raises a ValueError that names the best possible one.
            ``{"false_positive": 1, "false_negative": 4}`` has the least expected cost: a label is kept if its
            probability is at least 1 / (1 + 4). Costs are numbers >= 0; or (L,), one for each label; or a
            dict or an indexed Series by label name; or two columns of a data frame.
        return_names : bool
            Return a list of names for each row instead, in the order of `rank`.
        at_least, at_most : int
            The least and greatest number of labels of a row, its best ones, whatever the threshold. With
            them a guarantee holds only for recall under `at_least`, with `allowed` not at all: a warning says
            so.
        return_quality : bool
            Return a pair instead: the label sets, and the expected "precision", "recall" and "f1" of each, a
            dict of float32 arrays (n,), which show the surest rows. `metarank evaluate` compares them with
            the truth. The precision of an empty set is NaN.
        """
        self._check_is_fitted()
        for name, asked in (("return_names", return_names), ("return_quality", return_quality)):
            if not isinstance(asked, (bool, np.bool_)):
                raise TypeError(f"{name} must be True or False, got {asked!r:.80}")
        sizes = SetSizes(at_least, at_most)
        metric = self._metric(optimize, sizes, limits)
        scored = self._score_rows(X, **limits)
        kept = self.fitted_.label_sets(scored, metric, sizes)
        quality = self.fitted_.expected_quality(scored, kept) if return_quality else None
        out: Any = names_in_order(scored, kept, self.label_table_) if return_names else kept
        if not return_names:
            kept.label_names, kept.label_ids = self.label_names_, self.label_table_.ids
        return out if quality is None else (out, quality)

    def _answers(
        self,
        X: Any,
        k: int,
        optimize: Any,
        probabilities: bool,
        weight: float | str | None,
        limits: Any,
        sizes: SetSizes = ANY_SIZE,
        quality: bool = False,
    ) -> Answers:
        """The results of `rank`, `predict_proba` and `predict` from scores computed once; None for those not
        requested. `limits` holds `exclude`, `allowed`, `candidates`, `pair_features` and `known`.
        """
        wanted = optimize is not None or sizes or quality
        metric = self._metric(optimize, sizes, limits) if wanted else ""
        scored = listed = self._score_rows(X, 1, weight, **limits)
        k = min(check_k(k), self.n_labels_)
        # Lists that are completed to k labels differ from those of `predict`.
        if self.shortlisters_ and k > self.shortlist_size and limits.get("allowed") is not None:
            listed = self._score_rows(X, k, weight, **limits)
        known = self.fitted_.probability_matrix(scored) if probabilities else None
        kept = worth = None
        if wanted:
            kept = self.fitted_.label_sets(scored, metric, sizes)
            worth = self.fitted_.expected_quality(scored, kept) if quality else None
        return Answers(ranking_of(listed, k), known, kept, worth)

    def _metric(self, optimize: Any, sizes: SetSizes, limits: Any) -> str | Costs:
        """What label sets are made for; warns of a guarantee that does not hold."""
        metric = self.thresholds_.check_metric(optimize)
        if isinstance(metric, Costs):
            return metric.check(self.n_labels_, self.label_names_)
        void = ["allowed"] * (limits.get("allowed") is not None) + ["at_most"] * (sizes.at_most is not None)
        void += ["at_least"] * bool(sizes.at_least and not metric.startswith("recall"))
        if void and parse_wish(metric):
            warnings.warn(f"optimize: {metric} is not guaranteed with {void[0]}", stacklevel=outside())
        return metric

    def _check_is_fitted(self) -> None:
        if "fitted_" not in vars(self):  # scikit-learn's own look at an estimator takes as long as a stage
            check_is_fitted(self, "ranker_")

    def _score_rows(
        self,
        X: Any,
        k: int = 1,
        propensity_weight: float | str | None = None,
        objective_weights: Any = None,
        /,  # an unknown keyword is an error
        **limits: Unpack[Limits],
    ) -> list[Scored]:
        """The candidates of rows with their scores, from which every answer is made."""
        answering = self.answering(propensity_weight, objective_weights)
        return self._score_request(answering, read_request(self.fitted_, X, **limits), k)

    def _score_request(self, answering: Answering, rows: Request, k: int) -> list[Scored]:
        """The candidates of the rows of a request with their scores."""
        return answering.score(rows, k)

    def answering(
        self, propensity_weight: float | str | None = None, objective_weights: Any = None
    ) -> Answering:
        """The stages of an answer."""
        self._check_is_fitted()
        model = self.fitted_
        ranker, weight = model.weighted_ranker(objective_weights), model.checked_weight(propensity_weight)
        return Answering(model, int(self.shortlist_size), self.n_jobs, ranker, weight)

    def score(
        self,
        X: Any,
        Y: Any = None,
        sample_weight: Any = None,
        *,
        y: Any = None,
        propensity_weight: float | str | None = None,
        **limits: Unpack[Limits],
    ) -> float:
        """Mean average precision of the ranking, without rows that have no relevant label.

        Y (or y) is one matrix of relevances, or lists of labels, matched by name. Unknown labels count as
        missed, with a warning.
        """
        self._check_is_fitted()
        return score_model(self, X, one_target(Y, y), sample_weight, propensity_weight, **limits)

    @overload
    def explain(self, x: Any, label: int | str, **options: Any) -> Explanation: ...
    @overload
    def explain(self, x: Any, label: None = None, **options: Any) -> list[Explanation]: ...
    def explain(  # type: ignore[misc]  # its options are checked below
        self,
        x: Any,
        label: int | str | None = None,
        *,
        n_neighbors: int = 3,
        propensity_weight: float | str | None = None,
        objective_weights: Any = None,
        **limits: Unpack[Limits],
    ) -> Explanation | list[Explanation]:
        """Explain the position of `label`, an id or name, for one instance `x`, with the arguments of `rank`
        except `known`. Without a label, a list explains the first three.

        Score = base + contributions. A label that is not a candidate of the row is explained as if it were.
        `n_neighbors` nearest training rows of the label are listed. ``str`` of the result is a page to read,
        ``to_dict()`` holds plain values.
        """
        answering = self.answering(propensity_weight, objective_weights)
        if label is not None:
            return explain_row(answering, x, label, n_neighbors, **limits)
        ranking = self.rank(
            one_row(x), 3, propensity_weight=propensity_weight, objective_weights=objective_weights, **limits
        )
        first = [int(label) for label in ranking.labels[0] if label >= 0]
        return [explain_row(answering, x, label, n_neighbors, **limits) for label in first]

    def suggest_missing(self, k: int = 10) -> list[MissingLabel]:
        """The k labels (at most 1,000) that are most probably missing from training rows, over all rows.

        Each has row, row_name, label, label_name and probability, from models that were fitted without the
        row's fold; ties in order of row, then label.
        """
        self._check_is_fitted()
        k = check_k(k)
        return self.fitted_.missing.top(k, self.row_names_, self.label_table_)

    def review_queue(
        self,
        X: Any,
        k: int = 10,
        *,
        goal: str = "recall",
        Y: Any = None,
        negatives: Any = None,
        optimize: str | None = None,
        propensity_weight: float = 0.0,
        **limits: Unpack[Limits],
    ) -> list[ReviewPair]:
        """The k pairs of row and label that a person should check first, over all rows.

        Parameters
        ----------
        X, exclude, allowed, candidates, pair_features, known : as in `rank`
        goal : "recall" or "errors"
            What a check gains. "recall": the probability that the label is relevant and missing from the
            label set. "errors": the probability that the decision of the set is wrong.
        Y, negatives : as in `fit`, optional
            Pairs that are known to be relevant or rejected, which are left out. Y may be part of the Dataset.
        optimize : as in `predict`
        propensity_weight : float in [0, 10]
            The gain times (1/p_l)^a, with a this weight and p_l the propensity of the label.

        Returns
        -------
        list of ReviewPair (row, label, label_name, probability, gain)
            By descending gain, ties in order of row, then label.
        """
        self._check_is_fitted()
        k, goal = check_k(k), check_goal(goal)
        metric = self._metric(optimize, ANY_SIZE, limits)
        check_real("propensity_weight", propensity_weight, 0, 10, "a number in [0, 10]")
        if isinstance(X, Dataset) and X.n_labels:
            if Y is not None:
                raise ValueError("Y must be left out if X is a Dataset with labels")
            Y = X
        scored = self._score_rows(X, **limits)
        judged = judged_pairs(self.fitted_, Y, negatives, sum(s.candidates.n_rows for s in scored))
        sets = self.fitted_.label_sets(scored, metric)
        factor = self.inv_propensity_**propensity_weight
        probabilities = self.fitted_.probability_matrix(scored)
        return review_pairs(probabilities, sets, judged, k, goal, factor, self.label_table_)

    # --- persistence -----------------------------------------------------------

    def _facts(self) -> dict[str, Any]:
        """`facts_of`."""
        return facts_of(self.fitted_, self.get_params(deep=False), type(self)().get_params(deep=False))

    def _about(self) -> dict[str, Any]:
        """`card_of`."""
        return card_of(self.fitted_)

    def make_ready(self, encoder: Any = None) -> None:
        """Load the encoder of texts, if the model has one; see `metarank.load`."""
        if isinstance(self.encoder_, BlocksEncoder) and self.encoder_.meaning is not None:
            self.encoder_.load_meaning(encoder)
            self.encoder = self.encoder_.meaning  # for another fit
        else:
            super().make_ready(encoder)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, object array (d,), if the training rows have them."""
        names = self.encoder_.names
        if names is None:
            raise AttributeError(f"this {type(self).__name__} was fitted on features without names")
        return np.array(names, dtype=object)

    @property
    def classes_(self) -> np.ndarray:
        """The labels of the columns of answers (n, L): names, or 0 .. L-1."""
        known = self.label_names_
        return np.arange(self.n_labels_) if known is None else np.array(known, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
