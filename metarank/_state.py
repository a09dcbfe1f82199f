"""`Fields`: the values of a part of a saved model, each asked for with the rule that it has to keep.

A model folder may come from anywhere, so that `from_state` of each class takes nothing as it stands: an array
has the dtype and shape that the class wrote, its ids lie inside of what they point to, and sizes agree. What
the compiled core checks when it is built over the arrays is not checked twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from metarank._threads import MOST_THREADS
from metarank.persist.limits import MOST, allowance

T = TypeVar("T")
# A size in a shape; None where any will do.
Shape = tuple[int | None, ...]

_MOST_IDS = MOST


class Fields:
    """Saved values by name.

    Parameters
    ----------
    values : mapping
        What `get_state` gave, or anything else.
    part : str
        What the values are of, for messages.

    Raises
    ------
    ValueError
        By every method, where a value is missing or does not keep its rule.

    Examples
    --------
    >>> fields = Fields({"ids": np.array([0, 3], np.int32)}, "Example")
    >>> fields.ids("ids", np.int32, (None,), below=3)
    Traceback (most recent call last):
    ValueError: ids of Example must lie in [0, 3), got 3
    """

    def __init__(self, values: Any, part: str) -> None:
        if not isinstance(values, Mapping):
            raise ValueError(f"{part} must be a mapping of names to values, got {values!r:.80}")
        self.values = values
        self.name = part

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def has(self, name: str) -> bool:
        """Whether there is a value, and not None."""
        return self.values.get(name) is not None

    def raw(self, name: str) -> Any:
        """The value, whatever it is."""
        if name not in self.values:
            raise ValueError(f"{self.name} must have a value {name!r}")
        return self.values[name]

    def fail(self, name: str, rule: str) -> ValueError:
        """The error of a value that does not keep the rule."""
        return ValueError(f"{name} of {self.name} must {rule}, got {_shown(self.values.get(name))}")

    # --- single values -------------------------------------------------------

    def integer(self, name: str, least: int = 0, most: int = _MOST_IDS) -> int:
        value = self.raw(name)
        if type(value) is not int or not least <= value <= most:
            raise self.fail(name, f"be an integer in [{least}, {most}]")
        return value

    def size(self, name: str) -> int:
        """A number of features, labels or rows that need not be borne out by an array."""
        allowed = allowance()
        value = self.integer(name, 0, allowed.each)
        allowed.take(value)
        return value

    def number(self, name: str, least: float = -math.inf, most: float = math.inf) -> float:
        """A finite number."""
        value = self.raw(name)
        if type(value) not in (int, float) or not abs(value) <= 1e308 or not least <= value <= most:
            raise self.fail(name, f"be a finite number in [{least}, {most}]")
        return float(value)

    def extended(self, name: str, *, nan: bool = False) -> float:
        """A number, or plus or minus infinity; NaN where that may be."""
        value = self.raw(name)
        if type(value) is float and (math.isinf(value) or (nan and math.isnan(value))):
            return value
        return self.number(name)

    def numbers(self, name: str, n: int, most: float = math.inf) -> list[float]:
        """So many finite numbers, none beyond `most` or below minus that."""
        value = self.raw(name)
        if not isinstance(value, list) or len(value) != n:
            raise self.fail(name, f"be {n} numbers")
        return [Fields({name: v}, self.name).number(name, -most, most) for v in value]

    def flag(self, name: str) -> bool:
        value = self.raw(name)
        if not isinstance(value, bool):
            raise self.fail(name, "be true or false")
        return value

    def text(self, name: str, choices: Sequence[str] | None = None) -> str:
        value = self.raw(name)
        if not isinstance(value, str) or (choices is not None and value not in choices):
            raise self.fail(name, "be a text" if choices is None else f"be one of {sorted(choices)}")
        return value

    def strings(self, name: str, n: int | None = None) -> list[str]:
        value = self.raw(name)
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.fail(name, "be a list of texts")
        if n is not None and len(value) != n:
            raise ValueError(f"{name} of {self.name} must be {n} texts, got {len(value)}")
        return list(value)

    def integers(self, name: str, least: int, most: int) -> list[int]:
        value = self.raw(name)
        if not isinstance(value, list) or not all(type(v) is int and least <= v <= most for v in value):
            raise self.fail(name, f"be a list of integers in [{least}, {most}]")
        return list(value)

    # --- arrays --------------------------------------------------------------

    def array(
        self,
        name: str,
        dtype: Any,
        shape: Shape,
        *,
        finite: bool = True,
        nonnegative: bool = False,
        most: float = math.inf,
    ) -> np.ndarray:
        """A C-contiguous array of one of the dtypes.

        `finite`: no NaN or infinity among floats; `nonnegative`: nor anything below 0; `most`: nor anything
        beyond that, or below minus that.
        """
        value = self.raw(name)
        dtypes = [np.dtype(d) for d in (dtype if isinstance(dtype, tuple) else (dtype,))]
        if not isinstance(value, np.ndarray) or value.dtype not in dtypes:
            raise self.fail(name, f"be an array of {' or '.join(map(str, dtypes))}")
        if not _fits(value.shape, shape):
            raise self.fail(name, f"have shape {_written(shape)}")
        if not value.flags.c_contiguous:
            raise self.fail(name, "be C-contiguous")
        if finite and value.dtype.kind == "f" and not _all_finite(value):
            raise ValueError(f"{name} of {self.name} must be finite numbers")
        if nonnegative and value.size and value.min() < 0:
            raise ValueError(f"{name} of {self.name} must not be negative, got {value.min()}")
        if math.isfinite(most) and value.size:
            for extreme in (value.min(), value.max()):
                if not abs(extreme) <= most:
                    raise ValueError(f"{name} of {self.name} must lie in [{-most}, {most}], got {extreme}")
        return value

    def ids(self, name: str, dtype: Any, shape: Shape, below: int, least: int = 0) -> np.ndarray:
        """An array of integers in [least, below)."""
        value = self.array(name, dtype, shape)
        if value.size:
            for bad in (value.min(), value.max()):
                if not least <= bad < below:
                    raise ValueError(f"{name} of {self.name} must lie in [{least}, {below}), got {bad}")
        return value

    def ascending_ids(self, name: str, dtype: Any, below: int) -> np.ndarray:
        """Distinct ids in ascending order, one dimension."""
        value = self.ids(name, dtype, (None,), below)
        if np.any(value[1:] <= value[:-1]):
            raise ValueError(f"{name} of {self.name} must ascend")
        return value

    def indptr(self, name: str, n: int | None, end: int) -> np.ndarray:
        """int64 (n + 1,) that does not decrease from 0 to `end`."""
        value = self.array(name, np.int64, (None if n is None else n + 1,))
        check_indptr(value, end, f"{name} of {self.name}")
        return value

    def csr(self, name: str, shape: Shape) -> sp.csr_matrix:
        """A float32 matrix, finite; that it is canonical CSR has been seen to."""
        value = self.raw(name)
        if not isinstance(value, sp.csr_matrix) or value.data.dtype != np.float32:
            raise self.fail(name, "be a sparse matrix of float32")
        if not _fits(value.shape, shape):
            raise self.fail(name, f"have shape {_written(shape)}")
        if not _all_finite(value.data):
            raise ValueError(f"{name} of {self.name} must be finite numbers")
        allowed = allowance()
        if value.shape[1] > allowed.each:
            raise self.fail(name, f"have at most {allowed.each} columns")
        allowed.take(value.shape[1])
        return value

    def rows(self, name: str, shape: Shape) -> np.ndarray | sp.csr_matrix:
        """Features: a float32 array or CSR matrix."""
        if sp.issparse(self.raw(name)):
            return self.csr(name, shape)
        return self.array(name, np.float32, shape)

    # --- parts ---------------------------------------------------------------

    def part(self, name: str) -> Fields:
        """Values within a value."""
        return Fields(self.raw(name), f"{self.name}.{name}")

    def parts(self, name: str) -> list[Fields]:
        value = self.raw(name)
        if not isinstance(value, list):
            raise self.fail(name, "be a list")
        return [Fields(v, f"{self.name}.{name}.{i}") for i, v in enumerate(value)]

    def object(self, name: str, cls: type[T]) -> T:
        """An object of a class, or of one below it."""
        value = self.raw(name)
        if not isinstance(value, cls):
            raise self.fail(name, f"be of class {cls.__name__}")
        return value

    def objects(self, name: str, cls: type[T]) -> list[T]:
        value = self.raw(name)
        if not isinstance(value, list) or not all(isinstance(v, cls) for v in value):
            raise self.fail(name, f"be a list of objects of class {cls.__name__}")
        return list(value)

    def estimator(self, cls: type[T], name: str = "params", *, tuples: Sequence[str] = ()) -> T:
        """An unfitted estimator of the class with the parameters in the value `name`.

        Parameters that the class does not have are refused, and those in `tuples`, which are written as
        lists, become tuples.
        """
        return cls(**self.params(cls, name, tuples=tuples))

    def params(self, cls: Any, name: str = "params", *, tuples: Sequence[str] = ()) -> dict[str, Any]:
        """The parameters of `estimator`."""
        params = dict(self.part(name).values)
        unknown = sorted(map(str, set(params) - set(cls._get_param_names())))
        if unknown:
            raise ValueError(f"{name} of {self.name} must be those of {cls.__name__}, got {unknown[0]!r:.80}")
        for key, value in params.items():
            if not _is_plain(value):
                raise ValueError(f"{key} of {self.name} must be plain values, got {_shown(value)}")
            if key == "n_jobs" and value is not None and not _few_threads(value):
                raise ValueError(f"n_jobs of {self.name} must be at most {MOST_THREADS}, got {value!r:.80}")
        return {k: tuple(v) if k in tuples and isinstance(v, list) else v for k, v in params.items()}


def check_indptr(indptr: np.ndarray, end: int, name: str) -> None:
    """ValueError unless it does not decrease from 0 to `end`."""
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != end or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError(f"{name} must not decrease from 0 to {end}")


def check_csr(indptr: np.ndarray, indices: np.ndarray, n_columns: int, name: str) -> None:
    """ValueError unless these are rows of ascending, distinct columns below `n_columns`.

    SciPy's routines follow them without looking.
    """
    check_indptr(indptr, len(indices), f"indptr of {name}")
    if not len(indices):
        return
    if indices.min() < 0 or indices.max() >= n_columns:
        raise ValueError(f"indices of {name} must lie in [0, {n_columns})")
    back = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
    if len(back) and not np.array_equal(indptr[np.searchsorted(indptr, back)], back):
        raise ValueError(f"indices of {name} must ascend within a row")


def _fits(found: tuple[int, ...], shape: Shape) -> bool:
    return len(found) == len(shape) and all(s is None or s == n for n, s in zip(found, shape))


def _written(shape: Shape) -> str:
    return f"({', '.join('any' if s is None else str(s) for s in shape)})"


def _all_finite(values: np.ndarray) -> bool:
    # The extremes of all: one pass, and no array of the same size.
    return not values.size or bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biuf" and _all_finite(value)
    return value is None or isinstance(value, (bool, int, float, str))


def _few_threads(value: Any) -> bool:
    return type(value) is int and value <= MOST_THREADS


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"{value.dtype} {value.shape}"
    return (
        f"{value!r:.80}"
        if value is None or isinstance(value, (bool, int, float, str))
        else type(value).__name__
    )
