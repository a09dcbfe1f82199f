"""`MetaRanker`: the estimator.

The methods say what they promise; the work is done by the modules of this folder. `fit` has the order in
which the stages of a model are fitted, `answer` the order in which they answer. What a fit learns is a
`FittedModel`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from metarank import persist
from metarank._util.parameters import RandomState, check_real, one_target, remembered, seed_of
from metarank._util.progress import note, report, shows_progress, taking_notes
from metarank._util.threads import resolve_n_jobs, single_threaded_blas
from metarank.data.dataset import Dataset
from metarank.data.encoder import InputEncoder
from metarank.data.label_files import read_labels as as_labels
from metarank.metrics.resampling import Interval
from metarank.model.answer import Answering, names_in_order
from metarank.model.best_points import best_points
from metarank.model.explain import Explanation, explain_row
from metarank.model.fit import fit_model
from metarank.model.fitted import SAVED, FittedModel, Learned, Scored, fitted_model
from metarank.model.given_sources import check_mode
from metarank.model.inputs import check_given, read_training
from metarank.model.label_change import LabelChange
from metarank.model.label_updates import changed_labels, rows_labels, with_more_rows
from metarank.model.measure import score_model
from metarank.model.parameters import (
    FitOptions,
    check_labelwise,
    check_parameters,
    fit_options,
    plain,
    saved_parameters,
)
from metarank.model.request import read_request
from metarank.model.stages import LocalStages
from metarank.model.targets import check_objectives
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.persist.fields import Group, Params
from metarank.persist.spec import Saved, Spec
from metarank.ranker import Ranker
from metarank.scorers.base import LabelScorer
from metarank.scorers.source import Source
from metarank.thresholds import LearnedCuts
from metarank.types.checks import check_rejected
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.label_table import LabelTable
from metarank.types.missing import MissingLabel
from metarank.types.ranking import Ranking, check_k, row_index
from metarank.types.review import ReviewPair, check_goal, review_pairs
from metarank.types.strings import PackedStrings
from metarank.types.view import TrainingSet


@persist.register
class MetaRanker(Saved, BaseEstimator):
    """Rank the labels of an instance and decide how many of them to keep.

    Each pair (instance, label) becomes a document described by meta-features (Yang & Gopal 2012). A
    learning-to-rank model orders the pairs, and learned thresholds cut the list. The meta-features of a
    training row come from the training set without the row's fold.

    Parameters
    ----------
    shortlister : "auto", name, LabelScorer, list of names and LabelScorers, or None
        The sources that propose candidate labels: "neighbors", "names", "spelling", "label-vectors",
        "embedder", "parabel", "xreg", "fastxml", "pfastxml", "pfastrexml", "one-vs-all". None ranks all
        labels. "auto" ranks all labels up to 1,000, of sparse rows up to 100; beyond, it takes neighbours,
        label trees, a ridge over all labels (up to 7,000 rows), and names and vectors of labels if they are
        known. With features="auto", all of these also describe beyond so many labels, and the classifiers
        among them up to there. Of more proposals than are worth it, the 30 best of a row, or twice its mean
        number of labels, are described and ranked by `ranker`; the others follow them.
    features : "auto", "yang2012", or list of names and LabelScorers
        The sources that describe a pair. "yang2012" gives exactly the 3k + 2 columns of the paper, with k
        chosen by cross-validation.
    label_text : "auto", "learned", None, or list of str
        Texts of the labels (L). "auto" takes them, or else the label names, from the Dataset, and uses them
        if the features are words. "learned" also trains label embeddings on them (`NameEmbedder`, which needs
        the extra ``text``): one more source of candidates and evidence, which takes minutes to train.
    ranker : "auto", the name of a ranker, or a Ranker
        Names: "ensemble", "lambdarank", "xendcg", "binary", "pointwise", "listwise", "logistic", "listnet",
        "ranksvm", "svmmap", "blend" (logistic and LambdaRank). "auto" is "pointwise" if labels are
        shortlisted, or the ensemble for few pairs, and with low effort the quickest. If candidates are given,
        it is "listwise" or "pointwise", and if all labels are ranked, the ensemble or LambdaRank, chosen by
        cross-validation.
    threshold : "auto" or the name of a family of cuts
        "auto" chooses the family by cross-validation, separately for each metric.
    n_folds : int
        Number of folds K >= 2. Scorers without a closed form are fitted K times on (K - 1) / K of the rows,
        which costs about K - 1 times as much as one fit. With more folds, the meta-features of training rows
        are closer to those of new rows.
    n_jobs : int or None
        Threads for all stages. None and -1 mean all cores that the process may use, -2 all but one, and so
        on. Results do not depend on it.
    random_state : int, None, RandomState or Generator
        Seed. The same seed and data give the same bytes. None draws a fresh seed; a RandomState or Generator
        supplies a new draw for each fit. The attribute `random_state_` holds the seed that was used, which
        repeats the fit, and is what is saved.
    effort : "low", "medium" or "high"
        "low" leaves out the base classifiers, all shortlisters of "auto" except neighbours and names, and
        the choice of a ranker, which learns from fewer rows.
        "high" adds slower classifiers if all labels are ranked and values of X times labels are at most ten
        million.
    shortlist_size : int
        Candidates that each shortlister proposes for a row.
    propensity_weight : "auto" or float >= 0
        How far the ranking leans towards rare labels: the factor `a` in log-odds + a log(1/p_l), with the
        propensity p_l of Jain et al. (2016), eq. 1. 0 ranks by relevance alone, 1 by the expected gain of
        propensity-scored metrics. "auto" is 0 if all labels are ranked; if labels are shortlisted, it is the
        weight of greatest out-of-fold PSP@5 among those that cost at most 1 % of nDCG@5. `rank` accepts
        another weight without a refit. Label sets do not depend on it.
    label_separator : "auto", any text, "whitespace", "json", or None
        The separator of the labels of a row, if Y is a column of texts. "auto" decides once, from the whole
        column, by the rule of `metarank.data.separators`. None takes each text as one label. The separator of
        the fit, `label_separator_`, applies to all later files and columns.
    memory_budget : None, int (bytes), text such as "4GiB" or "512 MiB", or "auto"
        Limit on the memory of the process. "auto" is nearly all that the machine and its control group leave.
        Before work starts, `fit` logs an estimate of its peak, part by part. It adapts what results do not
        depend on, such as the number of pairs described at once, and refuses a fit that exceeds the budget.
        Results do not depend on it.
    language : None, "auto", "english", "en", ...
        Words of texts and of label names count by their stems in this language, so that "bridges" meets
        "bridge" (extra ``language``); see `TextVectorizer`. "auto" finds the language, and takes stems if
        they serve held-out rows as well as words do, which costs two quick fits of neighbours. None takes
        words as they are.
    text_part : None, "head:N" or "sample:N"
        The part of each text that is read, here and later: its first N characters, or sentences spread evenly
        over it, N characters at most; see `metarank.data.text_part.shortened`. None reads all.
    verbose : int
        0 is silent. 1 shows the progress of `fit`: the stage, the share that is done and the time left, in
        one line on a terminal or in a notebook (by `tqdm.auto`), elsewhere as one plain line per stage on
        standard error. The logger "metarank" logs the stages in any case.
    blocks : "auto" or dict of names to kinds
        What the blocks of X are, if X is a dict or a data frame with columns that are not numbers: "text",
        "vector", "numbers", "categories", "sparse", a `metarank.data.Block`, or None to leave a block out. By
        default their values and types tell; see `metarank.data.Blocks.of`. `choices_` tells what was
        understood and what each block weighs. Blocks that are of no use to held-out rows are left out.
    tune : int
        The number of settings to try for each label tree and each one-vs-all among the sources, by itself, on
        a part of the rows that it does not see: `tune` fits of these sources, not of the whole model. See
        `metarank.shortlist.Parabel`. Sources with a `tune` of their own keep it. 0 keeps their parameters.
        `choices_` tells what was tried, how good it was, how much work, and what was taken.
    labelwise : bool
        Whether to learn a second ranker, which orders the points of each label; see `rank_points`. Grades of
        relevance are its gains. It learns from the same rows and sources as the first, from two folds at
        least, and `ranker` says nothing of it: `choices_` tells which of three was taken, the first unless
        another is better by more than two standard errors of nDCG within the lists. Pairs in `negatives` are
        irrelevant to it, as are all without a label. Not for several objectives, nor with `sample_weight`.

    Attributes
    ----------
    n_features_in_, n_labels_ : int
    classes_ : array (L,)
        Names of the labels as an object array, or 0 .. L-1 where they have none.
    n_rows_ : int or None
        Training rows; None for models saved by versions that did not keep it.
    label_names_ : list of str or None
        Includes the names of removed labels.
    label_separator_ : str or None
        The separator of labels in the training data; "auto" if they were no texts.
    removed_ : int32 array
        Ids of removed labels; see `update_labels`.
    text_columns_ : list of str or None
        The columns of the training file that the texts were joined from, if they were named; the command line
        reads later files by them.
    label_table_ : LabelTable
        The labels by name and id.
    labels_ : LabelDescriptions or None
        What else is known of the labels, those removed included.
    sources_ : list of Source
        The fitted scorers, each with its use: whether it proposes candidates, and whether it describes pairs.
    scorers_, shortlisters_ : lists of fitted LabelScorers
        The scorers of `sources_` that describe, in the order of the columns, and those that propose.
    feature_columns_ : list of str
        Names of the columns of the feature table.
    feature_importances_ : float64 array (F,)
        Importance of each of `feature_columns_`, for any ranker: the mean absolute contribution to the score
        (as in `explain`, without the lean) over 500 training pairs, as a share, so that all sum to 1.
        Columns with the same information share their importance. Models saved by earlier versions lack it.
    held_out_quality_ : dict of str to (value, low, high)
        The quality to expect on new rows, with 95 % intervals: P@1, P@5, nDCG@5 and MAP of the ranking, and
        micro-F1, macro-F1, example-F1, Hamming loss and subset accuracy of the label sets (the latter with
        threshold="auto" and up to 200,000 pairs). It is measured on training rows that the judged model has
        not seen. Up to 300,000 pairs (60,000 if labels are shortlisted), the judged ranker learns from
        meta-features without the row's fold. Beyond, if all labels are ranked, it learns from the other rows
        of the row's fold; if labels are shortlisted, from all other folds, whose columns know the labels of
        the row's fold: on labels that have nothing to do with the rows, it then looks somewhat better than
        chance. A label all of whose rows are held out scores like any other. The attribute does not change
        when labels or rows are added. Models saved by earlier versions lack it.
    choices_ : list of str
        The choices of "auto" and cross-validation, and their reasons, one line each.
    ranker_ : fitted Ranker
    thresholds_ : fitted LearnedCuts
    inv_propensity_ : float64 array (L,)
        Inverse propensities of the training labels.
    random_state_ : int
        The seed of the fit.
    propensity_weight_ : float
        The weight that `rank` uses by default.

    Examples
    --------
    >>> from metarank import MetaRanker, data
    >>> train = data.make_multilabel(200, n_features=10, n_labels=4, seed=0)
    >>> model = MetaRanker(effort="low", n_jobs=1).fit(train)
    >>> model.rank(train.X[:2], k=3).labels.shape
    (2, 3)
    """

    fitted_: FittedModel
    n_features_in_: Learned[int] = Learned()
    n_labels_: Learned[int] = Learned()
    n_rows_: Learned[int | None] = Learned()
    label_names_: Learned[list[str] | None] = Learned()
    label_separator_: Learned[str | None] = Learned()
    label_table_: Learned[LabelTable] = Learned()
    labels_: Learned[LabelDescriptions | None] = Learned()
    removed_: Learned[NDArray[np.int32]] = Learned()
    sources_: Learned[list[Source]] = Learned()
    scorers_: Learned[list[LabelScorer]] = Learned()
    shortlisters_: Learned[list[LabelScorer]] = Learned()
    feature_columns_: Learned[list[str]] = Learned()
    feature_importances_: Learned[NDArray[np.float64]] = Learned()
    held_out_quality_: Learned[dict[str, Interval]] = Learned()
    choices_: Learned[list[str]] = Learned()
    ranker_: Learned[Ranker] = Learned()
    thresholds_: Learned[LearnedCuts] = Learned()
    inv_propensity_: Learned[NDArray[np.float64]] = Learned()
    random_state_: Learned[int] = Learned()
    propensity_weight_: Learned[float] = Learned()
    objective_names_: Learned[list[str] | None] = Learned()
    encoder_: Learned[InputEncoder] = Learned()
    row_names_: Learned[PackedStrings | None] = Learned()
    text_columns_: Learned[list[str] | None] = Learned()
    prior_: Learned[NDArray[np.float32] | None] = Learned()

    saved: ClassVar[Spec] = Spec(
        Params(
            of=saved_parameters,
            omits=("language", "tune", "labelwise", "text_part"),
            check=lambda model: model._check_parameters(trains=False),
        ),
        Group("fitted_", fitted_model, *SAVED),
    )

    def __init__(
        self,
        shortlister: str | LabelScorer | Sequence[str | LabelScorer] | None = "auto",
        features: str | Sequence[str | LabelScorer] = "auto",
        label_text: str | Sequence[str] | None = "auto",
        ranker: str | Ranker = "auto",
        threshold: str = "auto",
        n_folds: int = 5,
        n_jobs: int | None = None,
        random_state: RandomState = 0,
        effort: Literal["low", "medium", "high"] = "medium",
        shortlist_size: int = 50,
        propensity_weight: float | Literal["auto"] = "auto",
        memory_budget: int | str | None = None,
        label_separator: str | None = "auto",
        verbose: int = 0,
        language: str | None = None,
        blocks: Mapping[str, Any] | Literal["auto"] = "auto",
        tune: int = 0,
        labelwise: bool = False,
        text_part: str | None = None,
    ) -> None:
        self.shortlister = shortlister
        self.features = features
        self.label_text = label_text
        self.ranker = ranker
        self.threshold = threshold
        self.n_folds = n_folds
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.effort = effort
        self.shortlist_size = shortlist_size
        self.propensity_weight = propensity_weight
        self.memory_budget = memory_budget
        self.label_separator = label_separator
        self.verbose = verbose
        self.language = language
        self.blocks = blocks
        self.tune = tune
        self.labelwise = labelwise
        self.text_part = text_part

    # --- fit ---------------------------------------------------------------

    @shows_progress
    def fit(
        self,
        X: Any,
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
        candidates_fold: Any = None,
        labels: Any = None,
        pair_features: Any = None,
        negatives: Any = None,
    ) -> MetaRanker:
        """Learn from instances and their labels, or from several targets of each pair at once.

        Parameters
        ----------
        X : array-like or sparse (n, d), data frame, list of n texts, dict of blocks, or Dataset; None if
            candidates are given
            A dict of names to texts, vectors (n, d), numbers, categories or sparse features, or a data frame
            with columns that are not numbers, holds blocks. Neighbours, centroids and names describe each
            block by itself; linear models and trees see all of them, each on a scale that is learned on
            held-out rows. See the parameter `blocks`.
        Y : (n, L) indicator or grades (dense or sparse), a list of n lists of labels, or n classes
            Relevance >= 0; relevant means > 0. Omit it if X is a Dataset. Integers in lists are names, in
            order of value (`label_names_`: "7", "100"), unless `n_labels` is given. Y may also be a dict by
            objective ("relevance", "engagement", ...), over the same labels. Candidates and cuts then count a
            label as relevant if it is relevant for any objective, pairs are described for each objective, and
            one order serves all.
        y : optional
            The scikit-learn name of Y; give one of the two.
        sample_weight : array (n,), optional
            Non-negative weight of each row in the ranker.
        exclude : CSR (n, L), list of n lists of labels, or one list for all rows, optional
            Labels, as ids or names, that must not be candidates of a row here or in `rank` and `predict`;
            for example the item itself, if labels are items too.
        objectives : str or MultiObjectiveRanker, optional
            How several targets become one order: an aggregation of `MultiObjectiveRanker` ("label", the
            default, "loss", "plug-in-label", "epsilon", ...), or an unfitted one with its own weights and
            settings. After a plug-in, `rank` accepts other weights.
        n_labels : int, optional
            L. The integers in lists are then positions of labels in [0, L).
        groups : array-like (n,) of integers or texts, optional
            Rows of the same value (documents of one author, products of one family) stay on the same side of
            every division of the rows: of the folds, of rows held out to tune or to stop, and of resampling.
            So quality, calibration and cuts are those of rows from new groups. At least 2 groups; with fewer
            than `n_folds`, each group is a fold. Copies of a row stay together too, with their groups.
        candidates_fold : int array (n,), optional
            The fold of each row, of at least 2 different numbers >= 0, instead of the `n_folds` that are
            drawn. With `groups`, each group must lie within one fold. With `candidates`, the fold without
            which the scores of each row were made, if whatever made them was trained on these rows.
        candidates : dict of source name to candidates, or the candidates of one source, optional
            What others propose for each row, with scores, which are evidence of the pairs. Of one source: CSR
            of scores (n, L), whose stored entries count, zeros included; `Candidates`; a list with, for each
            row, (label, score) pairs, a dict of label to score, or labels, best first; or a table with the
            columns row, label, score and, for several sources, source. Columns of a matrix are labels in the
            order of `classes_`. `metarank.scorers.given.given_source.GivenScorer` has the columns that come
            of it. Answers need candidates of the same sources. A row without any has no label to rank.

            Scores of a model that was trained on these very rows are the commonest leak: they are too good
            here, and later rows get worse ones than the ranker has learned to trust. Make the scores of each
            row by a model that was trained without it (in folds, see `candidates_fold`), or keep the rows of
            that model apart from those of this fit. `score` and ``metarank evaluate`` warn if a source is far
            less often right on labelled rows than it was on the training rows.
        candidates_mode : "only" or "union"
            "only" ranks the candidates given, which sources that read X describe too; `shortlister` is then
            "auto". "union" ranks what the shortlisters of the model propose as well; where X is None, the
            `shortlist_size` labels that suit rows with such candidates (`metarank.scorers.given.linear`).
        pair_features : dict of name to values of pairs, or the values of one feature, optional
            More evidence of pairs, in the same forms, or a dict of (row, label) to value. It proposes none.
        labels : LabelDescriptions, data frame, path of a file, or list of dicts, optional
            What is known of the labels: alternative names, descriptions, parents and related labels; see
            `metarank.data.read_labels`. All labels of the table can be ranked, those without a row too. Y
            names them by id or name; a matrix without names has a column for each, in order. Labels of Y that
            the table lacks become labels without a description, with a warning.
        negatives : (n, L) indicator (dense or CSR) or list of n lists of labels, optional
            Labels, as ids or names, that a person rejected for a row. Of a CSR all stored entries count. They
            are irrelevant for certain; all other pairs without a label are then unjudged, which means that
            some of them are relevant. How many is estimated from rows with rejections (`labelled_share` in
            `metarank.model.unjudged`), and so many count as relevant in ranker, calibration and cuts, so that
            probabilities aim at what is relevant rather than at what is labelled. That works if all of the
            likely labels of some rows are judged; if the likely labels of all rows are, as after a
            `review_queue` over all rows, unjudged pairs count as irrelevant. Labels that no source proposes
            are not added to the candidates. The ranker is fitted twice. In `held_out_quality_`, metrics of
            the order still count unjudged labels as irrelevant. Promises of recall and precision rest on the
            estimate. Not for several objectives.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If an input or a parameter breaks its rule, or no row has a label. The message names it.
        """
        Y = one_target(Y, y)
        n_jobs = self._check_parameters()
        seed = seed_of(self.random_state)
        aggregation = check_objectives(Y, objectives, ranker=self.ranker, random_state=seed)
        check_given(X, Y, aggregation, labels)
        options = self._options(seed, n_jobs)
        check_labelwise(options, sample_weight, aggregation)
        check_mode(candidates_mode, options, has_rows=X is not None, has_candidates=candidates is not None)
        params = self.get_params(deep=False)
        with single_threaded_blas(), taking_notes() as notes:
            report("reading", 0.0)
            if not isinstance(self.random_state, Integral):
                note(f"random_state: {seed}, drawn; it repeats this fit")
            given = read_training(
                X,
                Y,
                sample_weight=sample_weight,
                exclude=exclude,
                n_labels=n_labels,
                separator=self.label_separator,
                aggregation=aggregation,
                groups=groups,
                candidates_fold=candidates_fold,
                table=None if labels is None else as_labels(labels),
                language=self.language,
                text_part=self.text_part,
                seed=seed,
                n_jobs=n_jobs,
                candidates=candidates,
                candidates_mode=candidates_mode,
                pair_features=pair_features,
                negatives=negatives,
                blocks=self.blocks,
            )
            fitted = fit_model(given, options, lambda data: self._at_work(data, n_jobs))
        # Only now: a fit that fails or is interrupted leaves the model as it was.
        self.fitted_ = replace(fitted, choices=notes)
        self._given_ = remembered(plain(params))
        report("done", 1.0)
        return self

    def _options(self, seed: int, n_jobs: int) -> FitOptions:
        """`fit_options`."""
        return fit_options(self, seed, n_jobs)

    @contextmanager
    def _at_work(self, data: TrainingSet, n_jobs: int) -> Iterator[LocalStages]:
        """The place where sources and ranker are fitted."""
        yield LocalStages(data, n_jobs)

    def _check_parameters(self, *, trains: bool = True) -> int:
        """`check_parameters`."""
        return check_parameters(self, trains=trains)

    # --- changes of labels and rows -------------------------------------------

    def update_labels(
        self, *, add: Any = None, remove: Any = None, rename: Any = None, merge: Any = None
    ) -> MetaRanker:
        """Change the label set without a new fit. On an error nothing changes. Not safe while others rank.

        Ids do not change: new labels are appended in order. A removed label keeps its id and its entry in
        `label_names_`, but is never proposed again; in a row to `score` it counts as missed, with a warning.
        A label that is added under the name of a removed one
        gets its id back, without its rows. Arguments refer to names and ids before the change.

        Neighbours, centroids, priors, propensities and the index of label names become equal to those of a
        fit on the changed rows. Trees and classifiers do not change: a label into which others were merged
        gets the maximum of their scores, and a label that they do not know gets their lowest score of the
        row. Ranker, cuts and calibration do not change. So a new label is found immediately by the words of
        its name that the model knows (from training texts, or names of features), and by its rows after
        `partial_fit`. A label without a known word raises a warning.

        Parameters
        ----------
        add : list of names or (name, text) pairs, or dict of name to text, optional
            New labels. If the labels have no names: their number, or a list of texts. A model with a table of
            labels (`labels_`) also takes a list of dicts with a "name" and any of "id", "description",
            "alternative_names", "parents", "related" and "vector", or a table of them: a data frame, whose
            parents and related labels may be labels of the model, or a `LabelDescriptions`.
        remove : list of ids or names, optional
        rename : dict of id or name to name or (name, text), optional
            The index of names then holds the new name and text.
        merge : dict of id or name to id or name, optional
            The rows of the key become rows of the value, and the key is removed. In a table of labels its
            names become alternative names of the value, and the labels below it labels below the value. In
            rows that are given later, as to `score` and `partial_fit`, the key counts as the value.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a label is unknown, removed, or in two changes at once; if a name is taken; if no source of the
            model keeps the training rows (neighbours do); or if the model has several objectives.
        """
        self._check_is_fitted()
        change = LabelChange.checked(self.fitted_, add, remove, rename, merge)
        with single_threaded_blas():
            self.fitted_ = changed_labels(self.fitted_, change, resolve_n_jobs(self.n_jobs))
        return self

    def partial_fit(self, X: Any, Y: Any = None, *, y: Any = None, negatives: Any = None) -> MetaRanker:
        """Add training rows without a new fit. On an error nothing changes. An unfitted model is fitted.

        Neighbours, centroids, priors and propensities become equal to those of a fit on all rows. Trees,
        classifiers, ranker, cuts, calibration and the scaling of features do not change. All labels must be
        labels of the model; add new ones with `update_labels` first. Grades count as relevant if > 0.

        Parameters
        ----------
        X, Y, y : as in `fit`
            The label names of a Dataset are looked up in those of the model.
        negatives : as in `fit`
            Of a fitted model they are checked, and count as labels that the rows lack, with a warning: what
            learns more from them does not change.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            As in `fit`; if a row has a label that is unknown or removed; if no source of the model keeps the
            training rows (neighbours do); or if the model has several objectives.
        """
        Y = one_target(Y, y)
        if "fitted_" not in vars(self):
            return self.fit(X, Y, negatives=negatives)
        with single_threaded_blas():
            self.fitted_ = with_more_rows(self, X, Y, negatives, resolve_n_jobs(self.n_jobs))
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
        propensity_weight: float | None = None,
        objective_weights: Any = None,
        pair_features: Any = None,
    ) -> Ranking:
        """The k best labels of each row, best first.

        Parameters
        ----------
        X : as in `fit`
        k : int
            Number of labels per row, at most L. Rows with fewer candidates are padded with -1.
        candidates : Candidates, CSR (n, L), list of n lists of labels, or one list for all rows, optional
            After a fit with candidates, those of the same sources, as in `fit`. After any other, your own
            shortlist, which is ranked instead. Of a CSR, all stored entries count, including zeros.
            Only the labels matter: the scores of a `Candidates`, which the shortlisters of
            `metarank.shortlist` return, are ignored, and a CSR of unequal numbers is refused; pass
            ``S.astype(bool)`` for its labels. Here and in `exclude` and `allowed`, integers are ids, as in
            `Ranking.labels`, and texts are names. A name that several labels share is refused.
        exclude : as in `fit`
            Labels that must not be ranked.
        allowed : CSR (n, L), list of n lists of labels, or one list for all rows, optional
            The only labels that may be ranked, without those in `exclude`. If labels are shortlisted and the
            shortlist of a row holds fewer allowed labels than the larger of k and `shortlist_size`, other
            allowed labels complete it to that number, the most frequent first: up to `shortlist_size` allowed
            labels are all ranked. `candidates` are restricted but not completed. The scores and probabilities
            of a label depend on its list, and so on `candidates`, `exclude` and `allowed`. A list of few
            labels says little about whether any of them is relevant.
        propensity_weight : float in [0, 10], optional
            Weight of rare labels instead of `propensity_weight_`; 0 ranks by relevance alone.
        objective_weights : array-like (K,) or dict of names to weights, optional
            Weights of the objectives instead of those of the fit, after a fit with a plug-in.
        pair_features : as in `fit`, after a fit with them

        Returns
        -------
        Ranking
            Equal scores are in order of label id. Rows without evidence (`without_evidence`: texts without a
            word that the model knows, sparse rows of zeros) get the labels in order of frequency, with the
            same lean towards rare labels as any row.
        """
        self._check_is_fitted()
        k = min(check_k(k), self.n_labels_)
        scored = self._scored(
            X,
            k,
            exclude=exclude,
            allowed=allowed,
            propensity_weight=propensity_weight,
            objective_weights=objective_weights,
            candidates=candidates,
            pair_features=pair_features,
        )
        names = self.label_names_
        parts = [
            Ranking.from_scores(
                s.candidates,
                k,
                values=s.scores,
                label_names=names,
                without_evidence=s.blank,
                n_jobs=self.n_jobs,
            )
            for s in scored
        ]
        ranking, index = Ranking.concatenate(parts), row_index(X)
        return ranking if index is None else ranking.with_index(index)

    def rank_points(
        self,
        X: Any,
        k: int = 10,
        *,
        exclude: Any = None,
        allowed: Any = None,
        candidates: Any = None,
        pair_features: Any = None,
    ) -> Ranking:
        """The k best rows of X for each label, best first: whom to recommend a new item to, or which new
        documents a topic should see.

        A model that was fitted with ``labelwise=True`` ranks them: a label is a query, and rows are its
        documents. Candidates of a label are the `shortlist_size` best rows (or k, if that is more) by each
        source: by algorithm 1 of Prabhu et al. (2020) where the source is a label tree
        (`XReg.shortlist_points`), else by the scores of the labels that it proposes for each row; all rows if
        all labels are ranked. The meta-features of the pairs, standardised within the list of the label, are
        ordered by what was learned from lists of training rows, each label counting the same. So the scores
        of a row depend on the set of rows that it is ranked among. They do not depend on `n_jobs`, and on the
        order of the rows only by the rounding of sums. They are not comparable between labels.

        Any other model orders the rows of a label by the calibrated probabilities of `predict_proba`. Then
        only labels that are candidates of a row can list it, and rare labels may list few rows.

        Parameters
        ----------
        X : as in `fit`
            The points: all of them at once.
        k : int
            Number of rows per label, at most n. Labels with fewer candidates are padded with -1.
        exclude, allowed, candidates, pair_features : as in `rank`
            They have an entry for each row of X, or for all. With ``labelwise=True``, `allowed` adds no
            candidates.

        Returns
        -------
        Ranking
            ``labels[l]`` holds the numbers of the rows of X for label l, ``scores[l]`` their scores, both
            (L, k), and ``n_labels`` is the number of rows. `to_frame` has the columns label, label_name,
            rank, row and score. Equal scores are in order of row. To judge it by
            relevances Y (n, L), pass ``Y.T``: ``metrics.evaluate(Y.T, found, ["nDCG@5", "WP@5"])``. With
            ``labelwise=True``, rows without evidence and labels of which nothing is known are not listed.

        Examples
        --------
        >>> from metarank import MetaRanker, data
        >>> train = data.make_multilabel(200, n_features=10, n_labels=4, seed=0)
        >>> model = MetaRanker(effort="low", n_jobs=1, labelwise=True).fit(train)
        >>> model.rank_points(train.X[:50], k=3).labels.shape
        (4, 3)
        """
        k = check_k(k)
        self._check_is_fitted()
        rows = read_request(
            self.fitted_,
            X,
            exclude=exclude,
            allowed=allowed,
            candidates=candidates,
            pair_features=pair_features,
        )
        return best_points(self.answering(), rows, k)

    def decision_function(
        self,
        X: Any,
        *,
        exclude: Any = None,
        allowed: Any = None,
        propensity_weight: float | None = None,
        candidates: Any = None,
        pair_features: Any = None,
    ) -> NDArray[np.float32]:
        """Ranking scores, float32 (n, L): those of `rank` with the same arguments.

        Labels that are not candidates of a row get its lowest score minus 1.
        """
        scored = self._scored(
            X,
            exclude=exclude,
            allowed=allowed,
            propensity_weight=propensity_weight,
            candidates=candidates,
            pair_features=pair_features,
        )
        return np.concatenate([s.candidates.to_dense(s.scores) for s in scored])

    def predict_proba(
        self,
        X: Any,
        *,
        exclude: Any = None,
        allowed: Any = None,
        candidates: Any = None,
        pair_features: Any = None,
    ) -> NDArray[np.float32] | sp.csr_matrix:
        """Calibrated probabilities of relevance; 0 for labels in `exclude`, those that are not `allowed`, and
        those that are not among `candidates`, where these are given as in `rank`.

        The calibration uses more than the score (the frequency of the label, its place in the list), so the
        probabilities need not follow the order of the ranking exactly. In rows without evidence, see `rank`,
        they are the labels' shares of the training rows.

        Returns
        -------
        float32 array (n, L), or CSR (n, L) of the candidates if labels are shortlisted
        """
        scored = self._scored(
            X, exclude=exclude, allowed=allowed, candidates=candidates, pair_features=pair_features
        )
        out = self.fitted_.probability_matrix(scored)
        return out if self.shortlisters_ else out.toarray()

    @overload
    def predict(
        self,
        X: Any,
        optimize: str | None = None,
        *,
        exclude: Any = None,
        allowed: Any = None,
        return_names: Literal[False] = False,
        candidates: Any = None,
        pair_features: Any = None,
    ) -> sp.csr_matrix: ...
    @overload
    def predict(
        self,
        X: Any,
        optimize: str | None = None,
        *,
        exclude: Any = None,
        allowed: Any = None,
        return_names: Literal[True],
        candidates: Any = None,
        pair_features: Any = None,
    ) -> list[list[str]]: ...
    def predict(
        self,
        X: Any,
        optimize: str | None = None,
        *,
        exclude: Any = None,
        allowed: Any = None,
        return_names: bool = False,
        candidates: Any = None,
        pair_features: Any = None,
    ) -> sp.csr_matrix | list[list[str]]:
        """Label sets, CSR (n, L) of 0/1, by the cut learned for a metric; empty in rows without evidence.

        Parameters
        ----------
        X : as in `fit`
        optimize : "micro-f1" (default), "macro-f1", "example-f1", "hamming", "subset-accuracy", or a promise
            Upper and lower case are the same. `fit` learns cuts for all of them; no choice needs a refit. The
            promises "recall>=0.9", "precision>=0.8" and "fnr<=0.1" (any level) hold for rows like those of
            the fit with confidence 0.9: see `ThresholdLearner` for what is promised, and under what
            assumptions. Limits of labels and rows without evidence are outside of them. A promise that
            cannot be kept is a ValueError that names the best that can be had; so is one of a model that was
            saved by an earlier version.
        exclude, allowed, candidates, pair_features : as in `rank`
        return_names : bool
            Return a list of names for each row instead, in the order of `rank`, as in `Ranking.names`.
        """
        self._check_is_fitted()
        if not isinstance(return_names, (bool, np.bool_)):
            raise TypeError(f"return_names must be True or False, got {return_names!r:.80}")
        metric = self.thresholds_.check_metric(optimize)
        scored = self._scored(
            X, exclude=exclude, allowed=allowed, candidates=candidates, pair_features=pair_features
        )
        kept = self.fitted_.label_sets(scored, metric)
        return names_in_order(scored, kept, self.label_table_) if return_names else kept

    def _answers(
        self, X: Any, k: int, optimize: str | None, probabilities: bool, weight: float | None, limits: Any
    ) -> tuple[Ranking, sp.csr_matrix | None, sp.csr_matrix | None]:
        """The results of `rank`, `predict_proba` and `predict` from scores that are computed once; None for
        what is not requested. `limits` holds `exclude`, `allowed`, `candidates` and `pair_features`.
        """
        if self.shortlisters_ and k > self.shortlist_size and limits.get("allowed") is not None:
            # Lists that are completed to k labels differ from those of `predict`.
            kept = None if optimize is None else self.predict(X, optimize, **limits)
            known = sp.csr_matrix(self.predict_proba(X, **limits)) if probabilities else None
            return self.rank(X, k, propensity_weight=weight, **limits), known, kept
        scored = self._scored(X, propensity_weight=weight, **limits)
        k = min(check_k(k), self.n_labels_)
        parts = [
            Ranking.from_scores(s.candidates, k, values=s.scores, without_evidence=s.blank) for s in scored
        ]
        known = kept = None
        if probabilities:
            known = self.fitted_.probability_matrix(scored)
        if optimize is not None:
            kept = self.fitted_.label_sets(scored, self.thresholds_.check_metric(optimize))
        return Ranking.concatenate(parts), known, kept

    def _check_is_fitted(self) -> None:
        if "fitted_" not in vars(self):  # scikit-learn's own look at an estimator takes as long as a stage
            check_is_fitted(self, "ranker_")

    def _scored(
        self,
        X: Any,
        k: int = 1,
        *,
        propensity_weight: float | None = None,
        objective_weights: Any = None,
        **asked: Any,
    ) -> list[Scored]:
        """The candidates of rows with their scores. `asked` is what `read_request` takes."""
        self._check_is_fitted()
        rows = read_request(self.fitted_, X, **asked)
        weight = self.fitted_.checked_weight(propensity_weight)
        ranker = self.fitted_.weighted_ranker(objective_weights)
        return self.answering().scored(rows, k, ranker, weight)

    def answering(self) -> Answering:
        """The stages of an answer, such as encoded rows and described pairs. `rank`, `predict` and the other
        methods use it."""
        self._check_is_fitted()
        return Answering(self.fitted_, int(self.shortlist_size), self.n_jobs, self.memory_budget)

    def score(
        self,
        X: Any,
        Y: Any = None,
        sample_weight: Any = None,
        *,
        y: Any = None,
        exclude: Any = None,
        propensity_weight: float | None = None,
        candidates: Any = None,
        pair_features: Any = None,
    ) -> float:
        """Mean average precision of the ranking, without rows that have no relevant label.

        Y (or y) is one matrix of relevances, or lists of labels, also after a fit on several objectives.
        Names are looked up in those of the model. Unknown labels count as missed, with a warning that tells
        their number. A matrix without names has L columns.
        """
        return score_model(
            self,
            X,
            one_target(Y, y),
            sample_weight,
            exclude=exclude,
            propensity_weight=propensity_weight,
            candidates=candidates,
            pair_features=pair_features,
        )

    def explain(
        self,
        x: Any,
        label: int | str,
        *,
        n_neighbors: int = 3,
        exclude: Any = None,
        allowed: Any = None,
        propensity_weight: float | None = None,
        objective_weights: Any = None,
        candidates: Any = None,
        pair_features: Any = None,
    ) -> Explanation:
        """Explain the place of `label` for one instance.

        Place and score are those of `rank` with the same arguments. The score is the sum of the base value
        and the contributions of the explanation.

        Parameters
        ----------
        x : one row: (d,) or (1, d) features, a text, or a Dataset of one row
        label : id or name of the label
            A label that is not a candidate of the row, or is ranked behind those that are described, is
            explained as if it had been described.
        n_neighbors : int
            Number of nearest training points of the label to list.
        exclude, allowed, propensity_weight, objective_weights, candidates, pair_features : as in `rank`
            `candidates` are those of the one row.

        Returns
        -------
        Explanation
            ``str`` gives a page to read, ``to_dict()`` plain values.
        """
        self._check_is_fitted()
        return explain_row(
            self,
            x,
            label,
            n_neighbors,
            propensity_weight,
            objective_weights,
            exclude=exclude,
            allowed=allowed,
            candidates=candidates,
            pair_features=pair_features,
        )

    def suggest_missing(self, k: int = 10) -> list[MissingLabel]:
        """Labels that are probably missing from training rows, the most probable first.

        Parameters
        ----------
        k : int
            Number of pairs (row, label) over all rows. A model keeps at most 1,000.

        Returns
        -------
        list of MissingLabel (row, row_name, label, label_name, probability)
            At most k. Ties are in order of row, then label. The probability is calibrated, from scores of
            models that were fitted without the row's fold. Only candidates of rows that the ranker was
            trained on are considered.

        Raises
        ------
        ValueError
            If k is not positive, or the model was saved by a version that did not keep such pairs.
        """
        self._check_is_fitted()
        k = check_k(k)
        missing = self.fitted_.missing
        if missing is None:
            raise ValueError("this model was saved before missing labels were kept with it: refit")
        return missing.top(k, self.row_names_, self.label_table_)

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
        exclude: Any = None,
        allowed: Any = None,
        candidates: Any = None,
        pair_features: Any = None,
    ) -> list[ReviewPair]:
        """The pairs of a row and a label that a person should look at first.

        Parameters
        ----------
        X : as in `fit`
            Best rows that the model was not fitted on, whose probabilities are right. Labels of a Dataset are
            taken as `Y`.
        k : int
            Number of pairs, over all rows.
        goal : "recall" or "errors"
            What a pair gains. "recall": the probability that the label is relevant and missing from the label
            set of `predict`; pairs inside of it gain nothing. Unit: relevant labels found by a judgement.
            "errors": the probability that the decision of the set is wrong, which is the probability outside
            of the set, and 1 minus it inside. Unit: wrong decisions corrected by a judgement.
        Y, negatives : as in `fit`, optional
            Pairs that are known to be relevant or rejected, which are left out.
        optimize : as in `predict`
            The label sets that are completed or corrected.
        propensity_weight : float in [0, 10]
            The gain times (1/p_l)^a, with a this weight and p_l the propensity of the label. 1 counts labels
            as propensity-scored metrics do, so that rare ones come first.
        exclude, allowed, candidates, pair_features : as in `rank`

        Returns
        -------
        list of ReviewPair (row, label, label_name, probability, gain)
            At most k, by descending gain; ties in order of row, then label. Pairs that no source proposes are
            not considered.

        Raises
        ------
        ValueError, TypeError
            If an argument breaks its rule. The message names it.
        """
        self._check_is_fitted()
        k, goal, table = check_k(k), check_goal(goal), self.label_table_
        metric = self.thresholds_.check_metric(optimize)
        check_real("propensity_weight", propensity_weight, 0, 10, "a number in [0, 10]")
        if isinstance(X, Dataset) and X.n_labels:
            if Y is not None:
                raise ValueError("Y must be left out where X is a Dataset, which holds its labels")
            Y = X
        scored = self._scored(
            X, exclude=exclude, allowed=allowed, candidates=candidates, pair_features=pair_features
        )
        found = self.fitted_.probability_matrix(scored)
        judged = sp.csr_matrix(found.shape, dtype=np.float32)
        if Y is not None:
            judged = judged + rows_labels(self, Y, found.shape[0])
        if negatives is not None:
            rejected = check_rejected(negatives, sp.csr_matrix(judged), table)
            judged = judged + rejected.to_csr(np.ones(rejected.n_pairs, np.float32))
        factor = self.inv_propensity_**propensity_weight
        return review_pairs(found, self.fitted_.label_sets(scored, metric), judged, k, goal, factor, table)

    # --- persistence -----------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder, completely or not at all; see `metarank.load`."""
        self._check_is_fitted()
        persist.save(self, path)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, object array (d,), if the training rows had them."""
        names = self.encoder_.names
        if names is None:
            raise AttributeError(f"this {type(self).__name__} was fitted on features without names")
        return np.array(names, dtype=object)

    @property
    def classes_(self) -> np.ndarray:
        """The labels of the columns of answers (n, L): names, or 0 .. L-1.

        scikit-learn's ``cross_val_predict(model, X, Y, method=...)`` works with a dense indicator Y (n, L)
        for "predict_proba" and "decision_function", and with a dense or sparse one for "predict".
        scikit-learn recodes each column of Y by its distinct values: a label of all rows then looks like one
        of none, and grades lose their distances. It does not work with lists of labels, since the model of
        each fold then has other columns.
        """
        known = self.label_names_
        return np.arange(self.n_labels_) if known is None else np.array(known, dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.target_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags
