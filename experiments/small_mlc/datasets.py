"""The sets of Yang & Gopal (2012), as every system of the comparison sees them."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from metarank import data
from metarank.data.scaling import FeatureTransform
from metarank.types.checks import check_features

SETS = ("emotions", "scene", "yeast", "citeseer17-single", "reuters90", "vowel")
# The rows of the paper's tables; vowel has Table 7 to itself.
TABLE_SETS = SETS[:-1]
_SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Problem:
    """One set with its published split.

    X, X_test : features as given, for metarank, which scales them itself
    scaled, scaled_test : for baselines; dense features of unit variance, sparse rows of unit length (3.4)
    Y, Y_test : bool (n, L)
    """

    name: str
    X: np.ndarray | sp.csr_matrix
    Y: np.ndarray
    X_test: np.ndarray | sp.csr_matrix
    Y_test: np.ndarray
    scaled: np.ndarray | sp.csr_matrix
    scaled_test: np.ndarray | sp.csr_matrix
    checksums: dict[str, str]

    @property
    def is_text(self) -> bool:
        return sp.issparse(self.scaled)

    @property
    def key(self) -> str:
        """What results on this problem depend on."""
        digest = hashlib.sha256(repr(sorted(self.checksums.items())).encode())
        digest.update(repr((self.X.shape, self.X_test.shape)).encode())
        return digest.hexdigest()


def make_problem(
    name: str,
    X: np.ndarray | sp.csr_matrix,
    Y: np.ndarray,
    X_test: np.ndarray | sp.csr_matrix,
    Y_test: np.ndarray,
    checksums: dict[str, str],
) -> Problem:
    """A problem, with the features scaled by what the training part shows."""
    scale = FeatureTransform().fit(X)
    return Problem(name, X, Y, X_test, Y_test, scale.transform(X), scale.transform(X_test), checksums)


def load_training_part(name: str) -> tuple[np.ndarray | sp.csr_matrix, np.ndarray, dict[str, str]]:
    """(X float32, Y bool, checksums) of a set's training rows.

    Raises
    ------
    FileNotFoundError
        If the set is not there; the message says where it is looked for.
    """
    folder = data_folder()
    train = data.load_named(name, "train", data_dir=folder)
    files = sorted((folder / "mlc" / name).glob("*.svm.gz"))
    checksums = {f"{name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    return check_features(train.X), train.Y.toarray() > 0, checksums


def load_problem(name: str, *, quick: bool = False) -> Problem:
    """Read a set. `quick`: 400 and 200 rows of its training part; the test part is not read."""
    X, Y, checksums = load_training_part(name)
    if quick:
        kept = np.random.default_rng(0).permutation(len(Y))[:600]
        inside, outside = kept[: len(kept) * 2 // 3], kept[len(kept) * 2 // 3 :]
        return make_problem(name, X[inside], Y[inside], X[outside], Y[outside], checksums)
    test = data.load_named(name, "test", data_dir=data_folder())
    layout = "sparse" if sp.issparse(X) else "dense"
    X_test = check_features(test.X, n_features=X.shape[1], layout=layout)
    return make_problem(name, X, Y, X_test, test.Y.toarray() > 0, checksums)


def data_folder() -> Path:
    """$METARANK_DATA, or shared/data beside the repository."""
    folder = Path(os.environ.get("METARANK_DATA") or _SHARED)
    if not folder.is_dir():
        raise FileNotFoundError(
            f"{folder}: no such folder; METARANK_DATA must name the folder of the data sets"
        )
    return folder
