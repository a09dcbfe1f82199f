"""`LabelEmbedder`: language-aware label embeddings (LALE) and the models they are compared with."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from metarank import _core, persist
from metarank._lazy import lazy
from metarank._progress import report
from metarank._tensors import Tensors
from metarank._threads import resolve_n_jobs
from metarank._validation import check_candidates, check_labels
from metarank.candidates import Candidates
from metarank.data.dataset import Dataset
from metarank.objectives.checks import check_choice
from metarank.ranking import Ranking, check_k
from metarank.text._extra import require_extra
from metarank.text.index import LabelIndex
from metarank.text.inference import TextModel
from metarank.text.kinds import (
    COMBINES,
    ENCODER_KINDS,
    LOSSES,
    NAME_ACTIVATIONS,
    WITH_IDS,
    WITH_NAMES,
    Combine,
    EncoderKind,
    Loss,
    NameActivation,
)
from metarank.text.subwords import Subwords, TokenLists

# Queries scored at once: n x L scores are never stored where k of each are asked for.
_CHUNK_SCORES = 1 << 24
# Labels of the training that one never seen is like.
_NEAREST_NAMES = 5
# Labels whose scores are looked at where FAISS proposes them.
_LEAST_PROPOSED = 64


class LabelEmbedder(BaseEstimator):
    """Ranks labels for short texts: ``score = q . f + b`` of an encoded query q and a vector f of the label.

    Language-aware label embeddings: what a label's name says is shared by all labels named alike, and a
    vector of the label's own bends it. Subwords come from byte-pair encoding of the training texts and the
    label names; q and f_text are the last states of both directions of two BiLSTM (or another encoder), each
    with a dense layer, which share the table of subword vectors and nothing else. Trained by Adam on the
    binary cross-entropy of ``sigmoid(score)``. Training needs torch and tokenizers (the extra ``text``), a
    fitted model tokenizers alone.

    Parameters
    ----------
    combine : "lale", "id", "text", "concat" or "gile"
        What f is, with f_id a learned vector of each label:

        * "lale": ``f_id * f_text``, entry by entry;
        * "id": ``f_id``; names play no part;
        * "text": ``f_text``;
        * "concat": ``tanh(W [f_id; f_text] + c)``;
        * "gile": ``w * f_text``, one linear layer for all labels over ``q * f_text``.
    encoder : "bilstm", "cnn" or "bow"
        Of queries and names. "cnn": the maximum over windows of three subwords; "bow": the mean of
        the subwords.
    vocabulary_size : int
        Most subwords.
    subword_dim, hidden_dim, embedding_dim : int
        G, H (even for "bilstm": half a direction) and E.
    max_length : int
        Subwords read of a text or name.
    batch_size, learning_rate, n_epochs : numbers
    patience : int
        Epochs without a gain in nDCG@5 on the held-out part after which training stops.
    validation_fraction : float in [0, 1)
        Share of the distinct texts held out to choose the epoch by. 0, or fewer than ten texts: none, and
        the last epoch stands.
    sampled_labels : "auto", int or None
        Labels looked at in a step: those relevant in the batch and others drawn at random to make up this
        number, the scores corrected for it. None: all; "auto": all up to 4096, above that so many.
    loss : "bce" or "warp"
        "warp" is the ranking loss of WSABIE and TagSpace; `predict_proba` is then no probability.
    bias : "auto", "label" or "global"
        b of each label, or one of all. "auto": "label" for "id" and "concat".
    name_activation : "linear" or "relu"
        At the end of the names' encoder. "relu" is the paper's: then no entry of q, which is never negative,
        can speak against a label, and training often stops short.
    device : "auto", "cpu" or "cuda"
        Of the training.
    search : "exact" or "faiss"
        How `rank` finds labels: among all scores, or among those that an HNSW graph of FAISS over the label
        vectors proposes, at least 64 and four times k. Scores are the same; a label may be missed.
    n_jobs : int or None
        Threads; no result depends on it.
    random_state : int

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
        sampled_labels: int | Literal["auto"] | None = "auto",
        loss: Loss = "bce",
        bias: Literal["auto", "label", "global"] = "auto",
        name_activation: NameActivation = "linear",
        device: Literal["auto", "cpu", "cuda"] = "auto",
        search: Literal["exact", "faiss"] = "exact",
        n_jobs: int | None = None,
        random_state: int = 0,
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
        self.sampled_labels = sampled_labels
        self.loss = loss
        self.bias = bias
        self.name_activation = name_activation
        self.device = device
        self.search = search
        self.n_jobs = n_jobs
        self.random_state = random_state

    # --- fit ---------------------------------------------------------------

    def fit(
        self,
        texts: Any,
        Y: Any = None,
        label_names: Sequence[str] | None = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> LabelEmbedder:
        """Learn from texts and their labels.

        Parameters
        ----------
        texts : sequence of str (n), or a `Dataset` with texts
            An empty text is the zero vector: its scores are the labels' biases.
        Y : as in `MetaRanker.fit`: (n, L) matrix or label lists
            Relevant means > 0. Left out with a Dataset.
        label_names : sequence of str (L), optional
            Needed unless ``combine="id"`` or `Y` is lists of names. Names may be equal, or empty.
        checkpoint : path, optional
            A file that is replaced after each epoch. Where it exists, training goes on from it, with the same
            result as if it had not been interrupted; `n_epochs` and `patience` may be others than before.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            Without the extra ``text``.
        ValueError, TypeError
            An input or a parameter that does not keep its rule; the message names it.
        """
        n_jobs = self._check_parameters()
        texts, Y, names = _check_input(texts, Y, label_names)
        if names is None and self.combine in WITH_NAMES:
            raise ValueError(f"label_names must be given for combine={self.combine!r}, got None")
        require_extra("torch", "tokenizers")
        from metarank.text.fitting import fit_network

        named = names if names is not None and self.combine in WITH_NAMES else []
        fitted = fit_network(self, texts, Y, named, n_jobs, None if checkpoint is None else Path(checkpoint))
        report("done", 1.0)
        self.label_names_ = names
        self.n_labels_ = self.n_trained_labels_ = int(Y.shape[1])
        self.subwords_ = fitted.subwords
        self.weights_ = fitted.weights
        self.n_parameters_ = sum(values.size for values in fitted.weights.values())
        self.history_ = fitted.history
        self.best_epoch_ = fitted.best_epoch
        self._settle(n_jobs)
        return self

    def _check_parameters(self) -> int:
        n_jobs = resolve_n_jobs(self.n_jobs)
        check_choice(self.combine, "combine", COMBINES)
        check_choice(self.encoder, "encoder", ENCODER_KINDS)
        check_choice(self.loss, "loss", LOSSES)
        check_choice(self.name_activation, "name_activation", NAME_ACTIVATIONS)
        check_choice(self.bias, "bias", ("auto", "label", "global"))
        check_choice(self.search, "search", ("exact", "faiss"))
        check_choice(self.device, "device", ("auto", "cpu", "cuda"))
        for name, least in (
            ("vocabulary_size", 2),
            ("subword_dim", 1),
            ("hidden_dim", 1),
            ("embedding_dim", 1),
            ("max_length", 1),
            ("batch_size", 1),
            ("n_epochs", 1),
            ("patience", 1),
            ("random_state", 0),
        ):
            _check_integer(getattr(self, name), name, least)
        if self.encoder == "bilstm" and self.hidden_dim % 2:
            raise ValueError(f"hidden_dim must be even for encoder='bilstm', got {self.hidden_dim!r}")
        if self.sampled_labels not in ("auto", None):
            _check_integer(self.sampled_labels, "sampled_labels", 1, "'auto', None or ")
        rate, fraction = self.learning_rate, self.validation_fraction
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 < float(rate) < math.inf:
            raise ValueError(f"learning_rate must be a number > 0, got {rate!r}")
        if isinstance(fraction, bool) or not isinstance(fraction, Real) or not 0 <= float(fraction) < 1:
            raise ValueError(f"validation_fraction must be a number in [0, 1), got {fraction!r}")
        return n_jobs

    def _settle(self, n_jobs: int) -> None:
        """Label vectors and biases of the weights."""
        self.__dict__.pop("_label_index", None)
        self.model_ = self._text_model()
        f_text = None
        if self.combine in WITH_NAMES:
            assert self.label_names_ is not None
            f_text = self.model_.names(self._tokens(self.label_names_), n_jobs)
        self.label_vectors_ = self.model_.label_vectors(self.weights_.get("label_ids"), f_text, n_jobs)
        bias = self.weights_["bias"]
        self.label_bias_ = np.repeat(bias, self.n_labels_) if len(bias) == 1 else bias

    def _text_model(self) -> TextModel:
        return TextModel(self.weights_, self.encoder, self.combine, self.name_activation)

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
        return self.rank_vectors(self._queries(texts)[0], k)

    def rank_vectors(self, queries: np.ndarray, k: int = 10) -> Ranking:
        """As `rank`, of vectors float32 (n, E) that `encode` gave."""
        k, n_jobs = check_k(k), resolve_n_jobs(self.n_jobs)
        if self.search == "faiss":
            pairs = self._label_index.propose(queries, max(_LEAST_PROPOSED, 4 * k), n_jobs)
            values = self._pair_scores(queries, pairs, n_jobs)
            return Ranking.from_scores(pairs, k, values=values, label_names=self.label_names_, n_jobs=n_jobs)
        step = max(1, _CHUNK_SCORES // self.n_labels_)
        parts = []
        for start in range(0, max(1, len(queries)), step):
            scores = self._scores(queries[start : start + step], n_jobs)
            parts.append(Ranking.from_scores(scores, k, label_names=self.label_names_, n_jobs=n_jobs))
        return Ranking.concatenate(parts)

    def decision_function(self, texts: Any) -> np.ndarray:
        """Scores of all labels, float32 (n, L)."""
        return self._scores(*self._queries(texts))

    def predict_proba(self, texts: Any) -> np.ndarray:
        """``1 / (1 + exp(-score))`` of all labels, float32 (n, L)."""
        return _sigmoid(self.decision_function(texts))

    def score_candidates(self, texts: Any, candidates: Any) -> np.ndarray:
        """Scores of some labels of each text, float32 (m,); the same bytes as in `decision_function`.

        Parameters
        ----------
        texts : sequence of str (n), or a `Dataset` with texts
        candidates : Candidates, sparse matrix (n, L), or list of n lists of label ids
        """
        queries, n_jobs = self._queries(texts)
        pairs: Candidates = check_candidates(candidates, len(queries), self.n_labels_)
        return self._pair_scores(queries, pairs, n_jobs)

    def encode(self, texts: Any) -> np.ndarray:
        """q of each text, float32 (n, E)."""
        return self._queries(texts)[0]

    def encode_names(self, names: Sequence[str]) -> np.ndarray:
        """f of labels by their names alone, float32 (r, E), as of labels never seen in training.

        Where f has a part of the label's own, that is the mean over the five labels of the training whose
        encoded names are nearest (by cosine).

        Raises
        ------
        ValueError
            If ``combine="id"``, whose labels have no names.
        """
        check_is_fitted(self)
        names = _check_texts(names, "names")
        if self.combine not in WITH_NAMES:
            raise ValueError(f"names say nothing where combine={self.combine!r}")
        n_jobs = resolve_n_jobs(self.n_jobs)
        f_text = self.model_.names(self._tokens(names), n_jobs)
        ids = self._unseen_ids(f_text, n_jobs) if self.combine in WITH_IDS else None
        return self.model_.label_vectors(ids, f_text, n_jobs)

    def add_labels(self, names: Sequence[str]) -> LabelEmbedder:
        """This model with further labels, known by their names alone; their ids follow those of the others.

        See `encode_names` for their vectors; a bias of the label's own is the mean one. The model stays as it
        is.

        Raises
        ------
        ValueError
            If ``combine="id"``, whose labels have no names.
        """
        check_is_fitted(self)
        return self.with_names([*(self.label_names_ or ()), *_check_texts(names, "names")])

    def with_names(self, names: Sequence[str]) -> LabelEmbedder:
        """This model with other names: of its L labels, in their order, and of any number of further ones.

        A label that is renamed keeps what was learned of it alone; further ones are as in `add_labels`.

        Raises
        ------
        ValueError
            If there are fewer than L names, or ``combine="id"``, whose labels have no names.
        """
        check_is_fitted(self)
        names = _check_texts(names, "names")
        if self.combine not in WITH_NAMES:
            raise ValueError(f"names say nothing where combine={self.combine!r}")
        n_new = len(names) - self.n_labels_
        if n_new < 0:
            raise ValueError(f"names must be at least {self.n_labels_}, one a label, got {len(names)}")
        n_jobs = resolve_n_jobs(self.n_jobs)
        out = copy.copy(self)
        out.weights_ = dict(self.weights_)
        if self.combine in WITH_IDS:
            ids = self._unseen_ids(self.model_.names(self._tokens(names[self.n_labels_ :]), n_jobs), n_jobs)
            out.weights_["label_ids"] = np.vstack([self.weights_["label_ids"], ids])
        if len(self.weights_["bias"]) > 1:
            mean = np.full(n_new, self.weights_["bias"].mean(), np.float32)
            out.weights_["bias"] = np.concatenate([self.weights_["bias"], mean])
        out.label_names_, out.n_labels_ = names, len(names)
        out._settle(n_jobs)
        return out

    def _unseen_ids(self, f_text: np.ndarray, n_jobs: int) -> np.ndarray:
        """f_id for labels never seen, by their encoded names: what labels named alike have learned."""
        assert self.label_names_ is not None
        trained = self.label_names_[: self.n_trained_labels_]
        known = _unit_rows(self.model_.names(self._tokens(trained), n_jobs))
        similarity = _core.vector_scores(_unit_rows(f_text), known, np.zeros(len(known), np.float32), n_jobs)
        nearest, _ = _core.top_k_dense(similarity, min(_NEAREST_NAMES, len(known)), n_jobs)
        return self.weights_["label_ids"][nearest].mean(axis=1, dtype=np.float64).astype(np.float32)

    def _queries(self, texts: Any) -> tuple[np.ndarray, int]:
        check_is_fitted(self)
        texts = _check_texts(texts, "texts")
        n_jobs = resolve_n_jobs(self.n_jobs)
        return self.model_.queries(self._tokens(texts), n_jobs), n_jobs

    def _scores(self, queries: np.ndarray, n_jobs: int) -> np.ndarray:
        return _core.vector_scores(queries, self.label_vectors_, self.label_bias_, n_jobs)

    def _pair_scores(self, queries: np.ndarray, pairs: Candidates, n_jobs: int) -> np.ndarray:
        return _core.vector_scores_of_pairs(
            queries, self.label_vectors_, self.label_bias_, pairs.indptr, pairs.labels, n_jobs
        )

    @lazy
    def _label_index(self) -> LabelIndex:
        return LabelIndex(self.label_vectors_, self.label_bias_)

    def _tokens(self, texts: Sequence[str]) -> TokenLists:
        return self.subwords_.encode(texts, self.max_length)

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

    def get_state(self) -> dict[str, Any]:
        """What `from_state` needs."""
        return {
            "params": self.get_params(deep=False),
            "label_names": self.label_names_,
            "n_labels": self.n_labels_,
            "n_trained_labels": self.n_trained_labels_,
            "subwords": self.subwords_.state,
            "weights": Tensors(self.weights_),
            "labels": Tensors(vectors=self.label_vectors_, bias=self.label_bias_),
            "n_parameters": self.n_parameters_,
            "history": self.history_,
            "best_epoch": self.best_epoch_,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> LabelEmbedder:
        """The inverse of `get_state`.

        Raises
        ------
        ImportError
            Without `tokenizers`, of the extra ``text``.
        """
        require_extra("tokenizers")
        model = cls(**state["params"])
        model.label_names_ = state["label_names"]
        model.n_labels_ = int(state["n_labels"])
        model.n_trained_labels_ = int(state["n_trained_labels"])
        model.subwords_ = Subwords(state["subwords"])
        model.weights_ = dict(state["weights"])
        model.n_parameters_ = int(state["n_parameters"])
        model.history_ = state["history"]
        model.best_epoch_ = int(state["best_epoch"])
        model.model_ = model._text_model()
        model.label_vectors_, model.label_bias_ = state["labels"]["vectors"], state["labels"]["bias"]
        return model

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _check_input(texts: Any, Y: Any, label_names: Any) -> tuple[list[str], Any, list[str] | None]:
    """Texts, labels as canonical CSR, and names."""
    if isinstance(texts, Dataset) and Y is None:
        Y = texts.Y
        label_names = texts.label_names if label_names is None else label_names
    texts = _check_texts(texts, "texts")
    if not texts:
        raise ValueError("texts must hold at least one text, got none")
    if label_names is not None:
        label_names = _check_texts(label_names, "label_names")
    Y, names, _ = check_labels(Y, n_rows=len(texts), label_names=label_names)
    return texts, Y, names


def _check_texts(texts: Any, name: str) -> list[str]:
    if isinstance(texts, Dataset):
        if texts.texts is None:
            raise ValueError(f"{name} must be texts or a Dataset with texts, got a Dataset without")
        return list(texts.texts)
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"{name} must be a sequence of strings, got one string; wrap it in a list")
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{position}] must be a string, got {text!r:.40}")
    return texts


def _check_integer(value: Any, name: str, least: int, others: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < least:
        raise ValueError(f"{name} must be {others}an integer >= {least}, got {value!r}")


def _unit_rows(vectors: np.ndarray) -> np.ndarray:
    norm = np.sqrt((vectors.astype(np.float64) ** 2).sum(axis=1, keepdims=True))
    return (vectors / np.where(norm > 0, norm, 1)).astype(np.float32)


def _sigmoid(scores: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-scores))
