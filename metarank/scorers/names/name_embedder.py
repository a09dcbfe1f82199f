"""`NameEmbedder`: language-aware label embeddings as a source of candidates and evidence."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank._util.parameters import check_choice, check_integer, with_parameters
from metarank.persist.fields import Object, Params, Strings
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer
from metarank.scorers.neighbors.training_rows import as_canonical, check_lists
from metarank.scorers.sizes import FitSizes, MemoryPart
from metarank.text.kinds import WITH_IDS, WITH_NAMES
from metarank.types.arrays import unit_rows
from metarank.types.candidates import Candidates
from metarank.types.view import Features, View

if TYPE_CHECKING:
    from metarank.text import LabelEmbedder


# Labels that a training step looks at.
_LABELS_OF_A_STEP = 512
# Most subwords of an embedder of names, and torch with its libraries.
_SUBWORDS, _TORCH_BYTES = 32_000, 190 << 20


@with_parameters
class NameEmbedder(LabelScorer):
    """What a `LabelEmbedder` learns of words and label names, over and above words that agree.

    The row's text is its words, those of greatest weight first, cut into subwords that rows and label names
    share: a label never seen in training is embedded by its name. Needs the extra ``text``, and label names.

    Columns: ``embedder_score``, the score of the pair, and ``embedder_cosine``, the cosine of its vectors.

    Parameters
    ----------
    combine : "lale", "text", "concat" or "gile"
        See `LabelEmbedder`.
    encoder, batch_size, learning_rate, n_epochs, id_penalty : see `LabelEmbedder`
        The order of a row's words is lost, hence the default encoder "mean". `id_penalty` counts where labels
        have vectors of their own ("lale" and "concat").
    dim : int
        Of subword vectors, hidden layer and embeddings alike.
    max_words : int
        Words of a row that count.

    Examples
    --------
    >>> from metarank import MetaRanker, data
    >>> model = MetaRanker(features=["neighbors", "names", NameEmbedder(combine="text")])
    >>> model.fit(data.load_pydocs())  # doctest: +SKIP
    """

    combine: str = "lale"
    encoder: str = "mean"
    dim: int = 128
    max_words: int = 64
    batch_size: int = 64
    learning_rate: float = 1e-3
    n_epochs: int = 30
    id_penalty: float = 0.15

    by_block = True
    needs_words = True
    reads_names = True
    saved: ClassVar[Spec] = Spec(
        Params(check=lambda scorer: check_integer("max_words", scorer.max_words, 1)),
        Strings("words_", "d", into=lambda words: np.array(words, dtype=object)),
        Object("embedder_", "LabelEmbedder", ("L",)),
    )

    def fit(self, view: View, *, n_jobs: int = 1) -> NameEmbedder:
        """Train on the rows of the View. Returns self.

        Raises
        ------
        ImportError
            Without the extra ``text``.
        ValueError
            If the words of the features or the names of the labels are unknown.
        """
        from metarank.text import LabelEmbedder

        check_choice("combine", self.combine, WITH_NAMES)
        for name in ("dim", "max_words"):
            check_integer(name, getattr(self, name), 1)
        if self.encoder == "bilstm" and self.dim % 2:
            raise ValueError(f"dim must be even for encoder='bilstm', got {self.dim!r}")
        if view.words is None or view.label_phrases is None:
            missing = "the words of the features" if view.words is None else "label_names"
            raise ValueError(f"NameEmbedder needs rows of words and the labels' names: {missing} are unknown")
        self.words_: NDArray[np.object_] = np.array(view.words, dtype=object)
        texts = self._texts(view.X)
        self.embedder_: LabelEmbedder = LabelEmbedder(
            self.combine,  # type: ignore[arg-type]  # checked there
            self.encoder,  # type: ignore[arg-type]
            subword_dim=self.dim,
            hidden_dim=self.dim,
            embedding_dim=self.dim,
            max_length=4 * self.max_words,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            n_epochs=self.n_epochs,
            id_penalty=self.id_penalty if self.combine in WITH_IDS else 0.0,
            sampled_labels=min(_LABELS_OF_A_STEP, view.Y.shape[1]),
            n_jobs=n_jobs,
            random_state=view.seed,
        ).fit(texts, view.Y, view.label_phrases)
        return self

    def updated(self, view: View, *, n_jobs: int = 1) -> NameEmbedder | None:
        """With the names of labels as they are now; what was learned of words stays as it is."""
        if view.label_phrases is None:
            return None
        if list(view.label_phrases) == self.label_phrases():
            return self
        out = type(self)(**self.get_params())
        out.words_ = self.words_
        out.embedder_ = self.embedder_.with_names(view.label_phrases, n_jobs=n_jobs)
        return out

    def memory(self, sizes: FitSizes, *, keeps_products: bool) -> list[MemoryPart]:
        # Vectors of subwords, labels and names; in training each has two moments, a gradient and its value at
        # the best epoch beside it, and torch is there.
        one = 4 * self.dim * (min(_SUBWORDS, 4 * sizes.n_features) + 2 * sizes.n_labels)
        remedy = "take a smaller dim, or label_text='auto'"
        return self._parts_of(sizes, one, 4 * one + _TORCH_BYTES, remedy)

    def n_columns(self) -> int:
        return 2

    def label_phrases(self) -> list[str]:
        return list(self.embedder_.label_names_ or [])

    def search(self, X: Features, *, n_jobs: int = 1) -> dict[str, Any]:
        """The rows' vectors, float32 (n, dim), which both proposing and describing need."""
        return {"queries": self.embedder_.encode(self._texts(X), n_jobs=n_jobs)}

    def score(
        self, X: Features, candidates: Candidates, *, n_jobs: int = 1, queries: np.ndarray | None = None
    ) -> dict[str, np.ndarray]:
        """Float32 columns (m,): ``embedder_score`` and ``embedder_cosine``."""
        queries = self.search(X, n_jobs=n_jobs)["queries"] if queries is None else queries
        model = self.embedder_
        check_lists(candidates, len(queries), model.n_labels_)
        pairs = (candidates.indptr, candidates.labels, n_jobs)
        vectors, bias = model.label_vectors_, model.label_bias_
        unit = unit_rows(queries), self._unit_vectors, np.zeros_like(bias)
        return {
            "embedder_score": _core.vector_scores_of_pairs(queries, vectors, bias, *pairs),
            "embedder_cosine": _core.vector_scores_of_pairs(*unit, *pairs),
        }

    @cached_property
    def _unit_vectors(self) -> np.ndarray:
        return unit_rows(self.embedder_.label_vectors_)

    def shortlist(
        self, X: Features, k: int, *, n_jobs: int = 1, queries: np.ndarray | None = None
    ) -> Candidates:
        """The k labels of greatest score, ties by the smaller label."""
        queries = self.search(X, n_jobs=n_jobs)["queries"] if queries is None else queries
        ranking = self.embedder_.rank_vectors(queries, min(k, self.embedder_.n_labels_), n_jobs=n_jobs)
        indptr = np.arange(len(queries) + 1, dtype=np.int64) * ranking.labels.shape[1]
        order = np.argsort(ranking.labels, axis=1)
        labels, scores = (np.take_along_axis(a, order, 1).ravel() for a in (ranking.labels, ranking.scores))
        return Candidates(indptr, labels, self.embedder_.n_labels_, {"embedder": scores})

    def _texts(self, X: Features) -> list[str]:
        """The words of each row, those of greatest weight first."""
        rows: sp.csr_matrix = as_canonical(X)
        if rows.shape[1] != len(self.words_):
            raise ValueError(f"X must have {len(self.words_)} features, got shape {rows.shape}")
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        words = self.words_[rows.indices[np.lexsort((rows.indices, -rows.data, row))]]
        ends = rows.indptr.tolist()
        return [" ".join(words[start : min(end, start + self.max_words)]) for start, end in pairwise(ends)]
