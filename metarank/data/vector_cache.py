"""`VectorCache`: the vectors of texts by one encoder, kept in a file between fits."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from types import TracebackType

import numpy as np

from metarank._util.modules import outside

# Keys looked for by one statement.
_KEYS = 500


class VectorCache:
    """The vectors that an encoder gave to texts, in an SQLite file of its own; use it as a context.

    Encoders of one name are distinguished by their answers to the probes. A file that cannot be read or
    written costs a warning, and keeps nothing.

    Parameters
    ----------
    folder : path or None
        None keeps nothing.
    name : str
    probes : float32 array (P, d)
        What the encoder answers to some fixed texts.
    tolerance : float
        The largest difference between the answers of one encoder.
    """

    def __init__(self, folder: Path | None, name: str, probes: np.ndarray, tolerance: float) -> None:
        file = f"vectors-{blake2b(name.encode(), digest_size=8).hexdigest()}.sqlite"
        self.path: Path | None = None if folder is None else folder / file
        self.probes: np.ndarray = probes
        self.tolerance: float = tolerance
        self._file: sqlite3.Connection | None = None
        self._encoder: bytes = b""

    def __enter__(self) -> VectorCache:
        if self.path is None:
            return self
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(self.path)
            self._file.execute("CREATE TABLE IF NOT EXISTS encoders (probes BLOB)")
            self._file.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB)")
            self._encoder = self._known()
        except (OSError, sqlite3.Error) as error:
            self._give_up(error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def get(self, texts: Sequence[str], alone: bool) -> tuple[np.ndarray, list[int]]:
        """float32 (n, d) with the vectors that are kept, and the places of the texts without one.

        Texts that were encoded alone are kept apart from those that were encoded with others.
        """
        out = np.zeros((len(texts), self.probes.shape[1]), np.float32)
        found: dict[bytes, bytes] = {}
        keys = [self._key(text, alone) for text in texts]
        for start in range(0, len(keys) if self._file is not None else 0, _KEYS):
            some = keys[start : start + _KEYS]
            asked = f"SELECT text, vector FROM vectors WHERE text IN ({','.join('?' * len(some))})"
            try:
                found.update(self._file.execute(asked, some))  # type: ignore[union-attr]
            except sqlite3.Error as error:
                self._give_up(error)
                break
        missing = []
        for place, key in enumerate(keys):
            vector = found.get(key)
            if vector is None or len(vector) != out[place].nbytes:
                missing.append(place)
            else:
                out[place] = np.frombuffer(vector, np.float32)
        return out, missing

    def put(self, texts: Sequence[str], vectors: np.ndarray, alone: bool) -> None:
        """Keep the vectors of texts."""
        if self._file is None:
            return
        rows = [(self._key(text, alone), vector.tobytes()) for text, vector in zip(texts, vectors)]
        try:
            with self._file:
                self._file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except sqlite3.Error as error:
            self._give_up(error)

    def _known(self) -> bytes:
        """What the file calls this encoder: the probes of the one that first answered so."""
        assert self._file is not None
        for (kept,) in self._file.execute("SELECT probes FROM encoders"):
            probes, own = np.frombuffer(kept, np.float32), self.probes.ravel()
            if probes.size == own.size and np.abs(probes - own).max() <= self.tolerance:
                return bytes(kept)
        with self._file:
            self._file.execute("INSERT INTO encoders VALUES (?)", (self.probes.tobytes(),))
        return self.probes.tobytes()

    def _give_up(self, error: Exception) -> None:
        warnings.warn(f"vectors of texts are not kept: {self.path}: {error}", stacklevel=outside())
        if self._file is not None:
            self._file.close()
        self._file = None

    def _key(self, text: str, alone: bool) -> bytes:
        encoder = blake2b(self._encoder, digest_size=16).digest()
        return blake2b(text.encode(), digest_size=16, key=encoder, person=b"alone" * alone).digest()
