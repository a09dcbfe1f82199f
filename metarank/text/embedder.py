"""`LabelEmbedder`: language-aware label embeddings (LALE) and related models."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from metarank import persist
from metarank._util.elementary import logistic
from metarank._util.extra import require_extra
from metarank._util.parameters import check_choice, one_target, require_seed, seed_of
from metarank._util.progress import report, shows_progress
from metarank._util.threads import resolve_n_jobs
from metarank.persist.spec import Saved, Spec
from metarank.text.index import LabelIndex
from metarank.text.inference import TextModel
from metarank.text.inputs import check_checkpoint, check_input, check_texts, check_vectors
from metarank.text.kinds import WITH_IDS, WITH_NAMES, Combine, EncoderKind, Loss, NameActivation
from metarank.text.parameters import SEARCHES, STRUCTURE, check_parameters
from metarank.text.scores import ScoredLabels
from metarank.text.state import SAVED
from metarank.text.subwords import Subwords, TokenLists
from metarank.text.unseen import unseen_ids, with_unseen
from metarank.types.candidates import Candidates
from metarank.types.checks import check_candidates
from metarank.types.label_table import LabelTable
from metarank.types.ranking import Ranking, check_k


class LabelEmbedder(Saved, BaseEstimator):
    """Ranks labels for short texts: ``score = q . f + b`` of an encoded query q and a vector f of the label.

    Language-aware label embeddings (LALE): labels with similar names share what their names say, and a vector
    of the label's own adjusts it. Subwords come from byte-pair encoding of the training texts and the label
    names. q and f_text are the last states of both directions of two BiLSTMs (or another encoder), each
    with a dense layer; the two share only the table of subword vectors. Adam minimises the binary
    cross-entropy of ``sigmoid(score)``. Training needs torch and tokenizers (the extra ``text``); a fitted
    model needs tokenizers alone.

    Parameters
    ----------
    combine : "lale", "id", "text", "concat" or "gile"
        What f is, with f_id a learned vector of each label:

        * "lale": ``f_id * f_text``, entry by entry;
        * "id": ``f_id``; names are not used;
        * "text": ``f_text``;
        * "concat": ``tanh(W [f_id; f_text] + c)``;
        * "gile": ``w * f_text``, one linear layer for all labels over ``q * f_text``.
    encoder : "bilstm", "cnn", "bow" or "mean"
        Encoder of queries and of names. "cnn": the maximum over windows of three subwords; "bow": the mean
        of the subwords through a hidden layer; "mean": their sum over the root of their number, linearly.
        Subword vectors of "mean" begin as those of positive pointwise mutual information in the texts and
        names, all others at random; it learns most from few rows and costs least.
    vocabulary_size : int
        Greatest number of subwords.
    subword_dim, hidden_dim, embedding_dim : int
        G, H (even for "bilstm": half a direction; "mean" has none) and E.
    max_length : int
        Number of subwords read from a text or name.
    batch_size, learning_rate, n_epochs : numbers
    patience : int
        Epochs without a gain in nDCG@5 on the held-out part after which training stops.
    validation_fraction : float in [0, 1)
        Share of the distinct texts held out to choose the best epoch. With 0, or fewer than ten texts, none
        is held out and the last epoch is kept.
    dropout : float in [0, 1)
        Share of the entries of texts' subword vectors that a training step leaves out at random; the others
        are divided by ``1 - dropout``. Names, and everything a fitted model reads, are read whole. Training
        then takes a few more epochs.
    id_penalty : float, at least 0
        Weight of a label's squared distance of f_id from where it says nothing of its own (1 for "lale", else
        0), over the number of its training rows: labels with few rows stay what their names say. .15 served
        on all sets tried.
    sampled_labels : "auto", int or None
        Number of labels in a training step: those relevant in the batch, filled up with random ones; the
        scores are corrected for the sampling. None: all labels; "auto": at most 4096.
    loss : "bce" or "warp"
        "warp" is the ranking loss of WSABIE and TagSpace; `predict_proba` then gives no probabilities.
    bias : "auto", "label" or "global"
        b of each label, or one of all. "auto": "label" for "id" and "concat".
    name_activation : "linear" or "relu"
        Activation at the end of the names' encoder. "relu" is the paper's. Since q is never negative
        either, no entry of q can then lower a score, and training often stops short.
    device : "auto", "cpu" or "cuda"
        Device for training.
    search : "exact" or "faiss"
        How `rank` finds labels: among all, or among those that an HNSW graph of FAISS over the label vectors
        proposes (at least 64 and four times k). Scores are the same; "faiss" may miss a label.
    n_jobs : int or None
        Threads; no result depends on it.
    random_state : int, None, RandomState or Generator
        As for `MetaRanker`.
    verbose : int
        0: silent. 1: `fit` shows a line of progress, see `MetaRanker`.

    Attributes
    ----------
    label_names_ : list of str or None
    n_labels_, n_trained_labels_ : int
        All labels, and those that came before `add_labels`.
    label_vectors_ : float32 array (L, E)
    label_bias_ : float32 array (L,)
    weights_ : dict of str to float32 array
    n_parameters_ : int
    history_ : dict
        "loss" and, with a held-out part, "nDCG@5" after each epoch.
    best_epoch_ : int
        From 1.
    random_state_ : int
        The seed of the fit.

    Examples
    --------
    >>> texts = ["red wine", "white wine", "green tea", "black tea"] * 5
    >>> names = ["wine", "tea"]
    >>> sizes = {"subword_dim": 16, "hidden_dim": 16, "embedding_dim": 16}
    >>> model = LabelEmbedder(encoder="bow", n_jobs=1, **sizes)
    >>> _ = model.fit(texts, [["wine"], ["wine"], ["tea"], ["tea"]] * 5, names)
    >>> model.rank(["some tea"], k=1).labels
    array([[1]], dtype=int32)
    """

    saved: ClassVar[Spec] = SAVED

    def __init__(
        self,
        combine: Combine = "lale",
        encoder: EncoderKind = "bilstm",
        *,
        vocabulary_size: int = 32_000,
        subword_dim: int = 256,
        hidden_dim: int = 256,
        embedding_dim: int = 256,
        max_length: int = 32,
        batch_size: int = 256,
        learning_rate: float = 3e-3,
        n_epochs: int = 30,
        patience: int = 3,
        validation_fraction: float = 0.1,
        dropout: float = 0.0,
        id_penalty: float = 0.0,
        sampled_labels: int | Literal["auto"] | None = "auto",
        loss: Loss = "bce",
        bias: Literal["auto", "label", "global"] = "auto",
        name_activation: NameActivation = "linear",
        device: Literal["auto", "cpu", "cuda"] = "auto",
        search: Literal["exact", "faiss"] = "exact",
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.combine = combine
        self.encoder = encoder
        self.vocabulary_size = vocabulary_size
        self.subword_dim = subword_dim
        self.hidden_dim = hidden_dim
        self.embedding_dim = embedding_dim
        self.max_length = max_length
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.n_epochs = n_epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.dropout = dropout
        self.id_penalty = id_penalty
        self.sampled_labels = sampled_labels
        self.loss = loss
        self.bias = bias
        self.name_activation = name_activation
        self.device = device
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # --- fit ---------------------------------------------------------------

    @shows_progress
    def fit(
        self,
        texts: Any,
        Y: Any = None,
        label_names: Sequence[str] | None = None,
        *,
        y: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        unlabelled: Sequence[str] | None = None,
    ) -> LabelEmbedder:
        """Learn from texts and their labels.

        Parameters
        ----------
        texts : sequence of str (n), or a `Dataset` with texts
            An empty text becomes the zero vector; its scores are the labels' biases.
        Y : as in `MetaRanker.fit`: (n, L) matrix or label lists
            Relevant means > 0. Left out with a Dataset.
        y : optional
            Y by the name that scikit-learn has for it; not both.
        label_names : sequence of str (L), optional
            Needed unless ``combine="id"`` or `Y` is lists of names. Names may be equal, or empty.
        checkpoint : path, optional
            A file that is replaced after each epoch. If it exists, training resumes from it, with the same
            result as without the interruption. `n_epochs` and `patience` may differ from before; finished
            epochs are kept.
        unlabelled : sequence of str, optional
            Further texts, from which subwords and, with ``encoder="mean"``, their first vectors are learned.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            Without the extra ``text``.
        ValueError, TypeError
            An input or a parameter is invalid; the message names it.
        OSError
            If `checkpoint` cannot be written.
        """
        Y = one_target(Y, y)
        n_jobs = check_parameters(self)
        kept = None if checkpoint is None else check_checkpoint(checkpoint)
        if kept is not None:
            require_seed(self.random_state, "where a checkpoint is kept")
        texts, Y, names = check_input(texts, Y, label_names)
        further = [] if unlabelled is None else check_texts(unlabelled, "unlabelled")
        if names is None and self.combine in WITH_NAMES:
            raise ValueError(f"label_names must be given for combine={self.combine!r}, got None")
        require_extra("text", "torch", "tokenizers")
        from metarank.text.fitting import fit_network

        named = names if names is not None and self.combine in WITH_NAMES else []
        seeded = clone(self).set_params(random_state=seed_of(self.random_state))
        fitted = fit_network(seeded, texts, Y, named, n_jobs, kept, further)
        report("done", 1.0)
        self.structure_: dict[str, Any] = {name: getattr(self, name) for name in STRUCTURE}
        self.random_state_: int = seeded.random_state
        self.label_names_ = names
        self.n_labels_: int = int(Y.shape[1])
        self.n_trained_labels_: int = self.n_labels_
        self.subwords_: Subwords = fitted.subwords
        self.weights_: dict[str, np.ndarray] = fitted.weights
        self.n_parameters_: int = sum(values.size for values in fitted.weights.values())
        self.history_: dict[str, list[float]] = fitted.history
        self.best_epoch_: int = fitted.best_epoch
        self._settle(n_jobs)
        return self

    def _settle(self, n_jobs: int, f_text: np.ndarray | None = None) -> None:
        """Label vectors and biases of the weights; the encoded names need not be given."""
        self.__dict__.pop("_label_index", None)
        self.__dict__.pop("_encoded_names", None)
        self.model_: TextModel = self._text_model()
        if self._reads_names:
            assert self.label_names_ is not None
            f_text = self._encoded(self.label_names_, n_jobs) if f_text is None else f_text
            self._encoded_names = f_text
        self.label_vectors_: NDArray[np.float32] = self.model_.label_vectors(
            self.weights_.get("label_ids"), f_text, n_jobs
        )
        bias = self.weights_["bias"]
        self.label_bias_: NDArray[np.float32] = np.repeat(bias, self.n_labels_) if len(bias) == 1 else bias

    @cached_property
    def _encoded_names(self) -> np.ndarray:
        """f_text of all labels, float32 (L, E); a loaded model encodes its names when first asked."""
        assert self.label_names_ is not None
        return self._encoded(self.label_names_, self._threads())

    @property
    def _reads_names(self) -> bool:
        return self.structure_["combine"] in WITH_NAMES

    @property
    def _has_ids(self) -> bool:
        return self.structure_["combine"] in WITH_IDS

    def _text_model(self) -> TextModel:
        kind = self.structure_
        return TextModel(self.weights_, kind["encoder"], kind["combine"], kind["name_activation"])

    # --- use ---------------------------------------------------------------

    def rank(self, texts: Any, k: int = 10) -> Ranking:
        """The k labels with the greatest scores of each text; ties go to the smaller id.

        Parameters
        ----------
        texts : sequence of str (n), or a `Dataset` with texts
        k : int
            Above L the lists are padded with -1.

        Returns
        -------
        Ranking
        """
        k = check_k(k)
        return self.rank_vectors(self.encode(texts), k)

    def rank_vectors(self, queries: np.ndarray, k: int = 10, *, n_jobs: int | None = None) -> Ranking:
        """As `rank`, for vectors float32 (n, E) from `encode`; `n_jobs=None` takes the model's."""
        check_is_fitted(self)
        check_choice("search", self.search, SEARCHES)
        k, n_jobs = check_k(k), self._threads(n_jobs)
        queries = check_vectors(queries, self.label_vectors_.shape[1])
        if self.search == "faiss":
            return self._labels.best_proposed(queries, k, n_jobs, self._label_index)
        return self._labels.best(queries, k, n_jobs)

    def decision_function(self, texts: Any) -> NDArray[np.float32]:
        """Scores of all labels, float32 (n, L)."""
        return self._labels.scores(self.encode(texts), self._threads())

    def predict_proba(self, texts: Any) -> NDArray[np.float32]:
        """``1 / (1 + exp(-score))`` of all labels, float32 (n, L)."""
        return np.asarray(logistic(self.decision_function(texts)))

    def score_candidates(self, texts: Any, candidates: Any) -> NDArray[np.float32]:
        """Scores of some labels of each text, float32 (m,); the same bytes as in `decision_function`.

        Parameters
        ----------
        texts : sequence of str (n), or a `Dataset` with texts
        candidates : Candidates, sparse matrix (n, L), or list of n lists of labels, ids or names
        """
        queries = self.encode(texts)
        pairs: Candidates = check_candidates(
            candidates, len(queries), LabelTable(self.n_labels_, self.label_names_)
        )
        return self._labels.scores_of_pairs(queries, pairs, self._threads())

    def encode(self, texts: Any, *, n_jobs: int | None = None) -> NDArray[np.float32]:
        """The vector q of each text, float32 (n, E); `n_jobs=None` takes the model's."""
        check_is_fitted(self)
        tokens = self._tokens(check_texts(texts, "texts"))
        return self.model_.queries(tokens, self._threads(n_jobs))

    def encode_names(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Label vectors f from names alone, float32 (r, E), as for labels never seen in training.

        Where f has a part of the label's own, it is the mean over the five training labels whose encoded
        names are nearest (by cosine).

        Raises
        ------
        ValueError
            If ``combine="id"``, whose labels have no names.
        """
        check_is_fitted(self)
        names, n_jobs = self._check_names(names), self._threads()
        f_text = self._encoded(names, n_jobs)
        ids = self._unseen_ids(f_text, n_jobs) if self._has_ids else None
        return self.model_.label_vectors(ids, f_text, n_jobs)

    def add_labels(self, names: Sequence[str]) -> LabelEmbedder:
        """Return a model with further labels, known by their names alone; their ids follow the existing ones.

        `encode_names` gives their vectors; where labels have biases of their own, theirs is the mean. This
        model does not change.

        Raises
        ------
        ValueError
            If ``combine="id"``, whose labels have no names.
        """
        check_is_fitted(self)
        return self.with_names([*(self.label_names_ or ()), *check_texts(names, "names")])

    def with_names(self, names: Sequence[str], *, n_jobs: int | None = None) -> LabelEmbedder:
        """Return a model with other names: for its L labels, in their order, and for new labels.

        A renamed label keeps the vector and bias of its own; new labels are treated as in `add_labels`.

        Raises
        ------
        ValueError
            If there are fewer than L names, or ``combine="id"``, whose labels have no names.
        """
        check_is_fitted(self)
        names = self._check_names(names)
        n_new = len(names) - self.n_labels_
        if n_new < 0:
            raise ValueError(f"names must be at least {self.n_labels_}, one a label, got {len(names)}")
        n_jobs = self._threads(n_jobs)
        known = self.label_names_ or []
        if names == known:
            return self
        renamed = [label for label, (name, old) in enumerate(zip(names, known)) if name != old]
        changed = [*renamed, *range(self.n_labels_, len(names))]
        f_text = np.resize(self._encoded_names, (len(names), self._encoded_names.shape[1]))
        f_text[changed] = self._encoded([names[label] for label in changed], n_jobs)
        out = copy.copy(self)
        out.weights_ = dict(self.weights_)
        if n_new:
            ids = self._unseen_ids(f_text[self.n_labels_ :], n_jobs) if self._has_ids else None
            out.weights_ = with_unseen(self.weights_, n_new, ids)
        out.label_names_, out.n_labels_ = names, len(names)
        out._settle(n_jobs, f_text)
        return out

    def _unseen_ids(self, f_text: np.ndarray, n_jobs: int) -> np.ndarray:
        """f_id for labels never seen, by their encoded names; see `unseen_ids`."""
        trained = self._encoded_names[: self.n_trained_labels_]
        return unseen_ids(f_text, trained, self.weights_["label_ids"], n_jobs)

    def _check_names(self, names: Any) -> list[str]:
        names = check_texts(names, "names")
        if not self._reads_names:
            raise ValueError(f"names say nothing where combine={self.structure_['combine']!r}")
        return names

    def _threads(self, n_jobs: int | None = None) -> int:
        return resolve_n_jobs(self.n_jobs if n_jobs is None else n_jobs)

    @property
    def _labels(self) -> ScoredLabels:
        return ScoredLabels(self.label_vectors_, self.label_bias_, self.label_names_)

    @cached_property
    def _label_index(self) -> LabelIndex:
        return LabelIndex(self.label_vectors_, self.label_bias_)

    def _encoded(self, names: Sequence[str], n_jobs: int) -> np.ndarray:
        return self.model_.names(self._tokens(names), n_jobs)

    def _tokens(self, texts: Sequence[str]) -> TokenLists:
        return self.subwords_.encode(texts, self.structure_["max_length"])

    # --- keep --------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a folder, which `metarank.load` reads: checksums, no pickle.

        Raises
        ------
        ValueError
            If not fitted, or if something else stands at `path`.
        """
        check_is_fitted(self)
        persist.save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _restored(self) -> None:
        self.structure_ = {name: getattr(self, name) for name in STRUCTURE}
        self.model_ = self._text_model()
