"""`Encoder`: pretrained vectors of texts, by sentence-transformers, model2vec or an object of the user's."""

from __future__ import annotations

import copy
import importlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from metarank._util.progress import report
from metarank.data.encoder import label_phrases
from metarank.data.vector_cache import VectorCache
from metarank.persist.fields import Array, Strings, Text
from metarank.persist.spec import Saved, Spec
from metarank.types.arrays import unit_rows
from metarank.types.label_descriptions import LabelDescriptions

# What an encoder is known by: it gives these the same vectors wherever it is loaded.
# The last tells how much of a text it reads.
_LONG = " ".join(map(str, range(400)))
PROBES = ("A label.", "Bridges of the river Rhine", "Sehr kleine Katzen", "42", _LONG)
# Another machine or number of threads changes the last digits alone.
_TOLERANCE = 1e-3
# Texts encoded between two reports of progress, each of which the cache keeps; fewer are not worth keeping.
_CHUNK = 1024
_LEAST_KEPT = 32
_BATCH = 64
# The modules that a folder which a saved model names may consist of: others may name classes to import.
_PLAIN_MODULES = ("Transformer", "Pooling", "Normalize")
_RULE = "a name or path that sentence-transformers or model2vec loads, or an object with encode(texts)"


class Encoder(Saved):
    """A pretrained encoder of texts, frozen, for `MetaRanker(encoder=...)`.

    Parameters
    ----------
    model : str, path, or object with ``encode(list of str) -> array (n, d)``
        A name or path is loaded by sentence-transformers or model2vec (the extra ``encoder``), whichever is
        installed and knows it, with their caches and offline settings.
    fields : sequence of str, optional
        The text fields of an instance that are encoded, one below the other in this order; all by default.
    cache_dir : path or None, optional
        Where vectors are kept for later fits, by text and encoder: by default the folder that the environment
        variable METARANK_CACHE names, or ``metarank`` in the user's cache folder. None: no cache. Vectors of
        an object are never cached.

    Notes
    -----
    Vectors are brought to unit length. A blank text has the vector 0. A text that is longer than the encoder
    reads is truncated by the encoder. Equal texts are encoded once. The last digits of a vector may change
    with the machine and the threads of torch, and, where `alone` is false, with the texts that are encoded
    with it.

    Examples
    --------
    >>> class Letters:
    ...     def encode(self, texts):
    ...         return [[text.count("a"), text.count("b")] for text in texts]
    >>> Encoder(Letters()).encode(["aab", "", "b"]).round(2)
    array([[0.89, 0.45],
           [0.  , 0.  ],
           [0.  , 1.  ]], dtype=float32)
    """

    saved: ClassVar[Spec] = Spec(
        Text("model", optional=True),
        Strings("fields", optional=True),
        Array("probes", np.float32, (len(PROBES), None), optional=True),
    )

    cache_dir: str | os.PathLike[str] | None = "auto"
    _model: Any = None
    _passed_again: bool = False
    _refused: str | None = None

    def __init__(
        self,
        model: Any,
        *,
        fields: Sequence[str] | None = None,
        cache_dir: str | os.PathLike[str] | None = "auto",
    ) -> None:
        is_name = isinstance(model, (str, os.PathLike))
        is_object = hasattr(model, "encode") and not isinstance(model, type)
        if not (is_name or model is None or is_object):  # None: to be passed to `load`
            raise TypeError(f"encoder must be {_RULE}, got {model!r:.80}")
        if isinstance(fields, str) or not all(isinstance(name, str) for name in fields or ()):
            raise TypeError(f"fields must be a list of names of text fields, got {fields!r:.80}")
        self.model: str | None = _named(os.fspath(model)) if is_name else None
        self.fields: list[str] | None = None if fields is None else list(fields)
        self.cache_dir = cache_dir
        self.probes: np.ndarray | None = None
        self._model: Any = None if is_name else model

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ if self.model is None else {**self.__dict__, "_model": None}

    @classmethod
    def of(cls, given: Any) -> Encoder:
        """The encoder that a user gave: itself, or that of a name, path or object; TypeError otherwise."""
        return given if isinstance(given, Encoder) else cls(given)

    def __deepcopy__(self, memo: Any) -> Encoder:  # scikit-learn's clone copies no network
        return copy.copy(self)

    def __repr__(self) -> str:
        return f"Encoder({self.model if self.model is not None else type(self._model).__name__!r})"

    @property
    def n_features(self) -> int:
        """d, once it is loaded or was used in a fit."""
        return 0 if self.probes is None else int(self.probes.shape[1])

    def load(self) -> Encoder:
        """Have the model ready, and see that it answers as in the fit, if there was one. Returns self.

        Raises
        ------
        ImportError
            If neither library is installed.
        ValueError
            If no library loads the name, no object was passed for a saved model that had one, or the encoder
            is another one than in the fit.
        """
        if self._refused is not None:
            raise ValueError(self._refused)
        if self._model is None:
            if self.model is None:
                raise ValueError(
                    "encoder must be passed, as load(path, encoder=...), since the fit had an object"
                )
            is_saved = self.probes is not None  # by a model that may be untrusted
            self._model = _loaded(self.model, is_saved, is_saved and not self._passed_again)
        probes = self._vectors(list(PROBES))
        if self.probes is None:
            self.probes = probes
        elif probes.shape != self.probes.shape or np.abs(probes - self.probes).max() > _TOLERANCE:
            self._refused = f"encoder must be that of the fit, but {self!r} gives other vectors now"
            raise ValueError(self._refused)
        return self

    def using(self, given: Any) -> Encoder:
        """The encoder of a saved model with the object, name or cache that a user passes again."""
        other = Encoder.of(given)
        if other.fields not in (None, self.fields):
            raise ValueError(f"fields must be those of the fit, {self.fields}, or None, got {other.fields}")
        out = Encoder(other._model or other.model, fields=self.fields, cache_dir=other.cache_dir)
        out.probes, out._passed_again = self.probes, True
        return out

    def encode(self, texts: Sequence[str], *, alone: bool = False) -> np.ndarray:
        """Vectors of unit length, float32 (n, d); 0 for a blank text.

        Parameters
        ----------
        texts : sequence of str
        alone : bool
            Whether the vector of a text must not depend on the other texts: sentence-transformers then reads
            one text at a time, on the CPU. Rows to be ranked are encoded like this.
        """
        if self._model is None or self.probes is None or self._refused is not None:
            self.load()
        texts = [text.encode(errors="replace").decode() for text in texts]  # no lone surrogates
        distinct = sorted({text for text in texts if text.strip()})
        out = np.zeros((len(texts), self.n_features), np.float32)
        if distinct:
            place = {text: i for i, text in enumerate(distinct)}
            vectors = self._kept(distinct, alone)
            known = [i for i, text in enumerate(texts) if text in place]
            out[known] = vectors[[place[texts[i]] for i in known]]
        return out

    def described(self) -> str:
        """A line on what it does with texts."""
        longest = getattr(self._model, "max_seq_length", None)
        truncates = longest is not None and np.isfinite(longest)
        limit = f"; it reads the first {longest} tokens of a text" if truncates else ""
        return f"encoder: {self!r}, vectors of {self.n_features} numbers{limit}"

    def _kept(self, texts: list[str], alone: bool) -> np.ndarray:
        """Vectors of distinct texts, those of the cache and new ones, which it keeps."""
        alone = alone and getattr(getattr(self._model, "device", None), "type", None) == "cpu"
        folder = None if self.model is None or len(texts) < _LEAST_KEPT else _cache_folder(self.cache_dir)
        assert self.probes is not None
        with VectorCache(folder, self.model or "", self.probes, _TOLERANCE) as cache:
            out, missing = cache.get(texts, alone)
            for start in range(0, len(missing), _CHUNK):
                report("encoding texts", start / len(missing))
                places = missing[start : start + _CHUNK]
                some = [texts[i] for i in places]
                out[places] = self._vectors(some, 1 if alone else _BATCH)
                cache.put(some, out[places], alone)
        return out

    def _vectors(self, texts: list[str], batch: int = _BATCH) -> np.ndarray:
        options = {} if self.model is None else {"batch_size": batch, "show_progress_bar": False}
        given = self._model.encode(texts, **options)
        rule = f"encoder must give a vector of finite numbers for each of {len(texts)} texts"
        try:
            vectors = np.asarray(given, np.float32)
        except (TypeError, ValueError, RuntimeError) as error:  # the last by tensors of torch
            raise ValueError(f"{rule}: {error}") from None
        shape = vectors.shape
        if len(shape) != 2 or shape[0] != len(texts) or 0 in shape or not np.isfinite(vectors).all():
            raise ValueError(f"{rule}, got an array of shape {shape}")
        if self.probes is not None and vectors.shape[1] != self.n_features:
            raise ValueError(
                f"encoder must give vectors of {self.n_features} numbers, got {vectors.shape[1]}"
            )
        return unit_rows(vectors)


def with_meaning(table: LabelDescriptions, encoder: Encoder) -> LabelDescriptions:
    """The table with the encoder's vectors of the labels that have none, by all that is written of them."""
    if table.vectors is not None and table.vectors.shape[1] != encoder.n_features:
        return table
    shape = len(table), encoder.n_features
    vectors = np.zeros(shape, np.float32) if table.vectors is None else table.vectors.copy()
    blank = np.flatnonzero(~vectors.any(axis=1))
    written = written_of(table)
    vectors[blank] = encoder.encode([written[i] for i in blank.tolist()])
    out = copy.copy(table)
    out.vectors = vectors
    return out


def _named(name: str) -> str:
    """A name, or the path of a folder, which stays the same where another folder is worked in."""
    return os.path.abspath(name) if os.path.isdir(name) else name


def encoded_by(encoder: Encoder | None, table: LabelDescriptions, labels: Sequence[int]) -> set[int]:
    """Of some labels, those with the encoder's vectors of what is written of them, not a user's."""
    if encoder is None or table.vectors is None or table.vectors.shape[1] != encoder.n_features:
        return set()
    written, vectors = written_of(table), table.vectors[list(labels)]
    apart = np.abs(encoder.encode([written[i] for i in labels]) - vectors).max(axis=1, initial=0)
    return {label for label, distance in zip(labels, apart) if distance <= _TOLERANCE}


def written_of(table: LabelDescriptions) -> list[str]:
    """All that is written of each label: its names, and its description."""
    others = table.alternative_names or [[]] * len(table)
    named = [", ".join(filter(None, [name.strip(), *more])) for name, more in zip(table.names, others)]
    return label_phrases(named, table.descriptions)


def _loaded(name: str, only_local: bool, untrusted: bool) -> Any:
    """The model of a name, by the first library that is installed and knows it.

    A saved model's name is loaded from this machine alone: who reads a model asks for no download. And of a
    folder that it names nothing is run.
    """
    failed: list[str] = []
    for module, load in (("sentence_transformers", _sentence_transformer), ("model2vec", _static_model)):
        try:
            library = importlib.import_module(module)
        except ImportError:
            continue
        try:
            return load(library, name, only_local, untrusted)
        except Exception as error:  # each library raises what it likes
            failed.append(f"{module}: {(str(error).strip() or repr(error)).splitlines()[0][:200]}")
    if failed:
        raise ValueError(f"encoder must be {_RULE}, got {name!r}: {'; '.join(failed)}")
    raise ImportError(
        "encoder needs sentence-transformers or model2vec; install the extra 'encoder', as by\n"
        "python -m pip install 'metarank-ltr[encoder]'"
    )


def _sentence_transformer(library: Any, name: str, only_local: bool, untrusted: bool) -> Any:
    options: dict[str, Any] = {"local_files_only": True} if only_local else {}
    if Path(name).is_dir():
        modules = Path(name) / "modules.json"
        if not modules.is_file():
            raise ValueError("no modules.json in the folder")
        if untrusted:
            kinds = [str(module["type"]) for module in json.loads(modules.read_text("utf-8"))]
            for kind in kinds:
                if (
                    kind.partition(".")[0] != library.__name__
                    or kind.rpartition(".")[2] not in _PLAIN_MODULES
                ):
                    raise ValueError(f"{kind} is not a plain module: use load(path, encoder=...)")
            options["model_kwargs"] = {"use_safetensors": True}  # other weights are pickles
    return library.SentenceTransformer(name, **options)


def _static_model(library: Any, name: str, only_local: bool, untrusted: bool) -> Any:
    if only_local and not Path(name).is_dir():
        raise ValueError("no folder of this name")
    return library.StaticModel.from_pretrained(name)


def _cache_folder(given: str | os.PathLike[str] | None) -> Path | None:
    if given is None:
        return None
    if given != "auto":
        return Path(given)
    if named := os.environ.get("METARANK_CACHE"):
        return Path(named)
    home = os.environ.get("LOCALAPPDATA") if os.name == "nt" else os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "metarank"
