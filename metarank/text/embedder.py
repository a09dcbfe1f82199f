"""`LabelEmbedder`: language-aware label embeddings (LALE) and related models."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from metarank import _core
from metarank._util.elementary import logistic
from metarank._util.extra import require_extra
from metarank._util.parameters import (
    check_choice,
    check_integer,
    check_random_state,
    check_real,
    one_target,
    seed_of,
)
from metarank._util.progress import check_verbose, report, shows_progress
from metarank._util.threads import resolve_n_jobs
from metarank.data.dataset import Dataset
from metarank.persist import fields
from metarank.persist.savable import Savable
from metarank.persist.spec import Spec
from metarank.persist.tensors import Tensors
from metarank.persist.trust import MOST
from metarank.text.scores import ScoredLabels
from metarank.text.subwords import Subwords
from metarank.types.arrays import unit_rows
from metarank.types.checks import check_labels
from metarank.types.ranking import Ranking, check_k

_SIZES = ("subword_dim", "hidden_dim", "embedding_dim")
# Parameters that a fitted model is made by: setting them afterwards says how the next fit is made.
_STRUCTURE = ("combine", "encoder", "name_activation", "bias", "max_length", *_SIZES)
_LARGEST_SIZE = 1 << 20
# Labels of the training that one never seen is like.
_NEAREST_NAMES = 5


class _Weights(fields.Field):
    """The network of a fitted model, as its weights."""

    def written(self, value: Any) -> Tensors:
        return Tensors({name: tensor.numpy() for name, tensor in value.state_dict().items()})

    def read(self, value: Any, known: fields.Known) -> Any:
        import torch

        from metarank.text.network import Network

        with torch.device("meta"):  # shapes alone
            network = Network(known.made, len(known.subwords_), known["trained"])
        shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
        arrays = (fields.Array(name, np.float32, shape, key=name) for name, shape in shapes.items())
        weights = fields.Group(self.name, tuple(arrays), key=self.saved_key).read(value, known)
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in weights.items()}
        network.load_state_dict(tensors, assign=True)
        return network.eval()


def _check_loaded(model: LabelEmbedder) -> None:
    require_extra("text", "torch", "tokenizers")
    model._check_parameters()


def _check_names(known: fields.Known) -> None:
    if known.label_names_ is None and known.combine != "id":
        raise known.fail("label_names", f"be known for combine={known.combine!r}", None)


@dataclass(eq=False, repr=False)
class LabelEmbedder(Savable):
    """Ranks labels for short texts: ``score = q . f + b`` of an encoded query q and a vector f of the label.

    Language-aware label embeddings (LALE): labels with similar names get similar vectors, adjusted by a
    vector for each label. Subwords come from byte-pair encoding of the training texts and the label
    names. q and f_text are the last states of both directions of two BiLSTMs (or another encoder), each
    with a dense layer; the two share only the table of subword vectors. Adam minimises the binary
    cross-entropy of ``sigmoid(score)``. Needs torch and tokenizers (the extra ``text``).

    Parameters
    ----------
    combine : "lale", "id", "text", "concat" or "gile"
        What f is, with f_id a learned vector of each label:

        * "lale": ``f_id * f_text``, entry by entry;
        * "id": ``f_id``; names are not used;
        * "text": ``f_text``;
        * "concat": ``tanh(W [f_id; f_text] + c)``, the paper's Combined;
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
        Weight of the squared distance of a label's f_id from its neutral value (1 for "lale" with linear
        names, else 0), divided by the number of its training rows: labels with few rows stay close to their
        names. .15 worked well on all data sets tried.
    sampled_labels : "auto", int or None
        Number of labels in a training step: those relevant in the batch, filled up with random ones; the
        scores are corrected for the sampling. None: all labels; "auto": at most 4096.
    loss : "bce", "softmax" or "warp"
        "softmax": cross-entropy of the softmax over the labels of a step (``sampled_labels=None``: all); the
        labels of a row share its target. "warp" is the ranking loss of WSABIE and TagSpace. With both
        `predict_proba` gives no probabilities.
    bias : "none", "global" or "label"
        b: none, as in the paper, one of all labels, or one of each; alike for every `combine`.
    name_activation : "linear" or "relu"
        Activation at the end of the names' encoder. "relu" is the paper's. Since q is never negative
        either, f_id alone can then lower a score, which for "lale" begins around 0; "text" has none, and
        its training often stops short.
    n_jobs : int or None
        Threads. The same number of threads gives the same bytes.
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
    network_ : torch.nn.Module
        Its weights are saved in the safetensors format.
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

    combine: Literal["lale", "id", "text", "concat", "gile"] = "lale"
    encoder: Literal["bilstm", "cnn", "bow", "mean"] = "bilstm"
    _: KW_ONLY
    vocabulary_size: int = 32_000
    subword_dim: int = 256
    hidden_dim: int = 256
    embedding_dim: int = 256
    max_length: int = 32
    batch_size: int = 256
    learning_rate: float = 3e-3
    n_epochs: int = 30
    patience: int = 3
    validation_fraction: float = 0.1
    dropout: float = 0.0
    id_penalty: float = 0.0
    sampled_labels: int | Literal["auto"] | None = "auto"
    loss: Literal["bce", "softmax", "warp"] = "bce"
    bias: Literal["none", "global", "label"] = "global"
    name_activation: Literal["linear", "relu"] = "linear"
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0

    saved: ClassVar[Spec] = Spec(
        fields.Params(
            of=lambda model: {**model.get_params(deep=False), **model.structure_},
            seeded=MOST,
            check=_check_loaded,
        ),
        fields.Array("label_vectors_", np.float32, ("L", lambda known: int(known.embedding_dim))),
        fields.Array("label_bias_", np.float32, ("L",)),
        fields.Integer("n_trained_labels_", 1, "L", size="trained"),
        fields.Strings("label_names_", "L", optional=True),
        fields.Object("subwords_", Subwords),
        _Weights("network_", key="weights"),
        fields.Each("history_", fields.List("", fields.Number("", floats="any"))),
        fields.Integer("best_epoch_"),
        check=_check_names,
    )

    # --- fit ---------------------------------------------------------------

    @shows_progress
    def fit(
        self,
        texts: Any,
        Y: Any = None,
        label_names: Sequence[str] | None = None,
        *,
        y: Any = None,
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
        """
        Y = one_target(Y, y)
        n_jobs = self._check_parameters()
        texts, Y, names = _read_input(texts, Y, label_names)
        further = [] if unlabelled is None else _read_texts(unlabelled, "unlabelled")
        if names is None and self.combine != "id":
            raise ValueError(f"label_names must be given for combine={self.combine!r}, got None")
        require_extra("text", "torch", "tokenizers")
        from metarank.text.training import trained

        seed = seed_of(self.random_state)
        named = None if self.combine == "id" else names
        found = trained(self, texts, Y, named, seed, n_jobs, further)
        report("done", 1.0)
        self.structure_: dict[str, Any] = {name: getattr(self, name) for name in _STRUCTURE}
        self.random_state_: int = seed
        self.label_names_: list[str] | None = names
        self.n_trained_labels_: int = int(Y.shape[1])
        self.network_, self.subwords_, self.history_, self.best_epoch_ = found
        ids = None if named is None else self._tokens(named)
        self.label_vectors_, self.label_bias_ = self.network_.all_labels(ids, n_jobs)
        return self

    def _check_parameters(self) -> int:
        """Refuses parameters that do not keep their rule; the number of threads."""
        for name, hint in get_type_hints(LabelEmbedder).items():
            if get_origin(hint) is Literal:
                check_choice(name, getattr(self, name), get_args(hint))
        for name in _SIZES:
            check_integer(name, getattr(self, name), 1, _LARGEST_SIZE)
        for name in ("max_length", "batch_size", "n_epochs", "patience"):
            check_integer(name, getattr(self, name), 1)
        check_integer("vocabulary_size", self.vocabulary_size, 2)
        if self.encoder == "bilstm" and self.hidden_dim % 2:
            raise ValueError(f"hidden_dim must be even for encoder='bilstm', got {self.hidden_dim!r}")
        if self.encoder == "mean" and self.name_activation != "linear":
            raise ValueError(
                f"name_activation must be 'linear' for encoder='mean', got {self.name_activation!r}"
            )
        if self.sampled_labels not in ("auto", None):
            check_integer("sampled_labels", self.sampled_labels, 1)
        check_real("learning_rate", self.learning_rate, 1e-12, 1e6, "a positive number, at most 1e6")
        check_real("id_penalty", self.id_penalty, 0, 1e6, "a number in [0, 1e6]")
        if self.id_penalty and self.combine in ("text", "gile"):
            raise ValueError(
                f"id_penalty must be 0 for combine={self.combine!r}, without vectors of labels, got "
                f"{self.id_penalty!r}"
            )
        for name in ("validation_fraction", "dropout"):
            check_real(name, getattr(self, name), 0, np.nextafter(1.0, 0.0), "a number in [0, 1)")
        check_random_state(self.random_state)
        check_verbose(self.verbose)
        return resolve_n_jobs(self.n_jobs)

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
        return self._labels.best(self.encode(texts), k, resolve_n_jobs(self.n_jobs))

    def decision_function(self, texts: Any) -> NDArray[np.float32]:
        """Scores of all labels, float32 (n, L)."""
        return self._labels.scores(self.encode(texts), resolve_n_jobs(self.n_jobs))

    def predict_proba(self, texts: Any) -> NDArray[np.float32]:
        """``1 / (1 + exp(-score))`` of all labels, float32 (n, L)."""
        return np.asarray(logistic(self.decision_function(texts)))

    def encode(self, texts: Any) -> NDArray[np.float32]:
        """The vector q of each text, float32 (n, E)."""
        check_is_fitted(self)
        tokens = self._tokens(_read_texts(texts, "texts"))
        return self.network_.encoded("query", tokens, resolve_n_jobs(self.n_jobs))

    def encode_names(self, names: Sequence[str]) -> NDArray[np.float32]:
        """Label vectors f from names alone, float32 (r, E), as for unseen labels.

        If f has a part for each label, it is the mean over the five training labels whose encoded
        names are nearest (by cosine).

        Raises
        ------
        ValueError
            If ``combine="id"``, whose labels have no names.
        """
        check_is_fitted(self)
        names, combine = _read_texts(names, "names"), self.structure_["combine"]
        if combine == "id":
            raise ValueError("names are not used with combine='id'")
        n_jobs = resolve_n_jobs(self.n_jobs)
        f_text = self.network_.encoded("name", self._tokens(names), n_jobs)
        alike = None
        if combine in ("lale", "concat"):
            known = self._tokens((self.label_names_ or [])[: self.n_trained_labels_])
            trained = unit_rows(self.network_.encoded("name", known, n_jobs))
            scores = _core.vector_scores(
                unit_rows(f_text), trained, np.zeros(len(trained), np.float32), n_jobs
            )
            alike, _ = _core.top_k_dense(scores, min(_NEAREST_NAMES, len(trained)), n_jobs)
        return self.network_.vectors_alike(f_text, alike, n_jobs)

    def add_labels(self, names: Sequence[str]) -> LabelEmbedder:
        """Return a model with further labels, from their names alone; their ids follow the existing ones.

        `encode_names` gives their vectors; if labels have biases, theirs is the mean. This model does not
        change.

        Raises
        ------
        ValueError
            If ``combine="id"``, whose labels have no names.
        """
        vectors, out = self.encode_names(names), copy.copy(self)
        mean = self.label_bias_[: self.n_trained_labels_].mean()
        out.label_names_ = [*(self.label_names_ or ()), *names]
        out.label_vectors_ = np.vstack([self.label_vectors_, vectors])
        out.label_bias_ = np.append(self.label_bias_, np.full(len(vectors), mean, np.float32))
        return out

    @property
    def n_labels_(self) -> int:
        return len(self.label_vectors_)

    @property
    def n_parameters_(self) -> int:
        return sum(values.numel() for values in self.network_.parameters())

    @property
    def _labels(self) -> ScoredLabels:
        check_is_fitted(self)
        return ScoredLabels(self.label_vectors_, self.label_bias_, self.label_names_)

    def _tokens(self, texts: Sequence[str]) -> np.ndarray:
        return self.subwords_.encode(texts, self.structure_["max_length"])

    # --- keep --------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags

    def _restored(self) -> None:
        self.structure_ = {name: getattr(self, name) for name in _STRUCTURE}


def _read_input(texts: Any, Y: Any, label_names: Any) -> tuple[list[str], Any, list[str] | None]:
    """Texts, labels as canonical CSR, and names; integers in lists are places in [0, L), which have none."""
    if isinstance(texts, Dataset) and Y is None:
        Y = texts.Y
        if label_names is None and not texts.label_names_are_ids:
            label_names = texts.label_names
    texts = _read_texts(texts, "texts")
    if not texts:
        raise ValueError("texts must hold at least one text, got none")
    if label_names is not None:
        label_names = _read_texts(label_names, "label_names")
    Y, names, _ = check_labels(Y, label_names=label_names, ids="positions")
    if Y.shape[0] != len(texts):
        raise ValueError(f"Y must have a row per text ({len(texts)}), got {Y.shape[0]}")
    return texts, Y, names


def _read_texts(texts: Any, name: str) -> list[str]:
    """A list of strings, from one or from a Dataset; TypeError or ValueError that calls it `name`."""
    if isinstance(texts, Dataset):
        if texts.texts is None:
            raise ValueError(f"{name} must be texts or a Dataset with texts, got a Dataset without")
        return list(texts.texts)
    odd = (str, bytes, Mapping, Set)
    if isinstance(texts, odd) or hasattr(texts, "columns") or not isinstance(texts, Iterable):
        raise TypeError(f"{name} must be a sequence of strings, such as one column, got {texts!r:.80}")
    texts = list(texts)
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"{name}[{position}] must be a string, got {text!r:.40}")
    return texts
