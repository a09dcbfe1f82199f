"""The kinds of fields of a `Spec`. Each writes one value of an object and checks it when it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from types import SimpleNamespace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from metarank._util.parameters import seed_of
from metarank._util.threads import MOST_THREADS
from metarank.persist.trust import MOST, Stored, count_declared

# A dimension: a number, the name of a size or "name+1", None for any size, or a function of `Known`.
Dim: TypeAlias = "int | str | Callable[[Any], int] | None"
# "finite" allows neither infinities nor NaN, "extended" allows infinities, "any" allows both.
Floats: TypeAlias = Literal["finite", "extended", "any"]
# Names of the sizes that an object shares with the enclosing one; a mapping where the names differ.
Links: TypeAlias = "Sequence[str] | Mapping[str, str]"


class Known:
    """The state of reading one object: the values read so far, by attribute, and the sizes, by name.

    `name` is what messages call the object. `made` is the object itself, where it already exists.
    """

    def __init__(self, name: str, sizes: dict[str, int], cls: Any = None) -> None:
        self.name = name
        self.sizes: dict[str, int] = sizes
        self.cls = cls
        self.made: Any = None
        self.values: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return self.values[name] if name in self.values else getattr(self.made, name)

    def __getitem__(self, size: str) -> int:
        return self.sizes[size]

    def within(self, name: str, value: Any) -> Known:
        """The state for a mapping within the object; it shares the sizes."""
        within = Known(f"{self.name}.{name}", self.sizes, self.cls)
        if not isinstance(value, Mapping):
            raise ValueError(f"{within.name} must be a mapping of names to values, got {value!r:.80}")
        return within

    def size(self, dim: Dim) -> int | None:
        """A dimension as a number; None if any size is allowed."""
        try:
            if isinstance(dim, str):
                name, _, more = dim.partition("+")
                return self.sizes[name] + int(more or 0)
            return dim(self) if callable(dim) else dim
        except KeyError:  # it depends on a size that is not known yet
            return None

    def fits(self, shape: tuple[int, ...], dims: tuple[Dim, ...]) -> bool:
        """Whether a shape matches the dimensions. Records named sizes that were not known before."""
        if len(shape) != len(dims):
            return False
        for n, dim in zip(shape, dims):
            if isinstance(dim, str):
                name, _, more = dim.partition("+")
                self.sizes.setdefault(name, n - int(more or 0))
            if self.size(dim) not in (None, n):
                return False
        return True

    def fail(self, key: str, rule: str, value: Any = None) -> ValueError:
        """The error for a value that breaks its rule; None is not shown."""
        got = "" if value is None else f", got {shown(value)}"
        return ValueError(f"{key} of {self.name} must {rule}{got}")


@dataclass(frozen=True)
class Field:
    """One value of a saved object.

    Parameters
    ----------
    name : str
        The attribute, or the parameter of the constructor.
    key : str, optional
        Its key in the saved form. The default is `name` without the trailing underscore.
    optional : bool
        Whether the value may be None, which is not written.
    when : function, optional
        Tells from the object, or from `Known`, whether it has this value at all.
    of, into : functions, optional
        Convert the object to the saved value, and a value that was read to the attribute.
    """

    name: str
    _: KW_ONLY
    key: str | None = None
    optional: bool = False
    when: Callable[[Any], bool] | None = None
    of: Callable[[Any], Any] | None = None
    into: Callable[[Any], Any] | None = None

    @property
    def saved_key(self) -> str:
        return self.name.rstrip("_") if self.key is None else self.key

    def value_of(self, obj: Any) -> Any:
        return getattr(obj, self.name) if self.of is None else self.of(obj)

    def put(self, obj: Any, state: dict[str, Any]) -> None:
        """Write the value of an object into its saved form."""
        if self.when is None or self.when(obj):
            value = self.value_of(obj)
            if value is not None or not self.optional:
                state[self.saved_key] = None if value is None else self.written(value)

    def take(self, state: Mapping[str, Any], known: Known) -> None:
        """Read the value from a saved form into `known`; ValueError if it breaks its rule."""
        if self.when is not None and not self.when(known):
            return
        key = self.saved_key
        if self.optional and state.get(key) is None:
            known.values[self.name] = None
        elif key not in state:
            raise ValueError(f"{known.name} must have a value {key!r}")
        else:
            known.values[self.name] = self.checked(state[key], known)

    def checked(self, value: Any, known: Known) -> Any:
        """The attribute for a saved value, which is checked first."""
        read = self.read(value, known)
        return read if self.into is None else self.into(read)

    def written(self, value: Any) -> Any:
        return value

    def read(self, value: Any, known: Known) -> Any:
        raise NotImplementedError

    def fail(self, known: Known, rule: str, value: Any = None) -> ValueError:
        return known.fail(self.saved_key, rule, value)


# --- single values --------------------------------------------------------------


@dataclass(frozen=True)
class Integer(Field):
    """An integer in [least, most]. With `size` it is the size of that name."""

    least: int = 0
    most: Dim = MOST
    size: str | None = None

    def read(self, value: Any, known: Known) -> int:
        most = known.size(self.most)
        if type(value) is not int or not self.least <= value <= (MOST if most is None else most):
            raise self.fail(known, f"be an integer in [{self.least}, {most}]", value)
        if self.size is not None and not known.fits((value,), (self.size,)):
            raise self.fail(known, f"be {known[self.size]}", value)
        return value


@dataclass(frozen=True)
class Declared(Integer):
    """A number of features, labels or rows that no array of the file has to confirm."""

    def read(self, value: Any, known: Known) -> int:
        size = super().read(value, known)
        count_declared(size, f"{self.saved_key} of {known.name}")
        return size


@dataclass(frozen=True)
class Number(Field):
    """A number in [least, most]."""

    least: float = -math.inf
    most: float = math.inf
    floats: Floats = "finite"

    def read(self, value: Any, known: Known) -> float:
        if type(value) is float and (
            (math.isinf(value) and self.floats != "finite") or (math.isnan(value) and self.floats == "any")
        ):
            return value
        if type(value) not in (int, float) or not abs(value) <= 1e308 or not self.least <= value <= self.most:
            raise self.fail(known, f"be a finite number in [{self.least}, {self.most}]", value)
        return float(value)


@dataclass(frozen=True)
class Flag(Field):
    """True or false."""

    def read(self, value: Any, known: Known) -> bool:
        if not isinstance(value, bool):
            raise self.fail(known, "be true or false", value)
        return value


@dataclass(frozen=True)
class Text(Field):
    """A string; one of `choices` where they are given."""

    choices: Sequence[str] | Mapping[str, Any] | None = None

    def read(self, value: Any, known: Known) -> str:
        if not isinstance(value, str):
            raise self.fail(known, "be a text", value)
        if self.choices is not None and value not in self.choices:
            raise self.fail(known, f"be one of {sorted(self.choices)}", value)
        return value


@dataclass(frozen=True)
class Params(Field):
    """The parameters of an estimator, from which it is constructed.

    Parameters
    ----------
    without : tuple of str
        Parameters that are not saved; they keep their defaults.
    tuples : tuple of str
        Parameters that are tuples; files hold them as lists.
    seeded : int, optional
        The largest seed. `random_state` is saved as `random_state_`, the seed of the fit.
    check : function of the estimator, optional
        Raises ValueError if a parameter is out of range.
    """

    name: str = "params"
    without: tuple[str, ...] = ()
    tuples: tuple[str, ...] = ()
    seeded: int | None = None
    check: Callable[[Any], None] | None = None

    def value_of(self, obj: Any) -> dict[str, Any]:
        params = obj.get_params(deep=False) if self.of is None else self.of(obj)
        if self.seeded is not None:
            params = {**params, "random_state": obj.random_state_}
        params = {key: value for key, value in params.items() if key not in self.without}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in params.items()}

    def take(self, state: Mapping[str, Any], known: Known) -> None:
        super().take(state, known)
        made = known.made = known.cls(**known.values.pop(self.name))
        if self.check is not None:
            self.check(made)
        if self.seeded is not None:
            made.random_state_ = seed_of(made.random_state, self.seeded)

    def read(self, value: Any, known: Known) -> dict[str, Any]:
        within = known.within(self.saved_key, value)
        unknown = sorted(map(str, set(value) - set(known.cls._get_param_names())))
        if unknown:
            raise ValueError(
                f"{within.name} must be parameters of {known.cls.__name__}, got {unknown[0]!r:.80}"
            )
        for key, param in value.items():
            if not _is_plain(param):
                raise known.fail(key, "be plain values", param)
            if key == "n_jobs" and param is not None and not (type(param) is int and param <= MOST_THREADS):
                raise known.fail(key, f"be at most {MOST_THREADS}", param)
        return {k: tuple(v) if k in self.tuples and isinstance(v, list) else v for k, v in value.items()}


# --- arrays ---------------------------------------------------------------------


@dataclass(frozen=True)
class Array(Field):
    """A C-contiguous array of one of the dtypes and the given dimensions, with values in [least, most].

    All values are greater than `above` and less than `below`, where these are given. If `ascending`, they are
    distinct and in order.
    """

    dtype: Any = None
    dims: tuple[Dim, ...] = (None,)
    least: float = -math.inf
    most: float = math.inf
    above: float | None = None
    below: Any = None
    floats: Floats = "finite"
    ascending: bool = False

    containers: ClassVar[Any] = (np.ndarray,)

    def read(self, value: Any, known: Known) -> Any:
        dtypes = [np.dtype(d) for d in (self.dtype if isinstance(self.dtype, tuple) else (self.dtype,))]
        if not isinstance(value, self.containers) or value.dtype not in dtypes:
            kinds = " or ".join(container.__name__ for container in self.containers)
            raise self.fail(known, f"be {kinds} of {' or '.join(map(str, dtypes))}", value)
        if not known.fits(value.shape, self.dims):
            sizes = ("any" if n is None else str(n) for n in map(known.size, self.dims))
            raise self.fail(known, f"have shape ({', '.join(sizes)})", value)
        values = value.data if sp.issparse(value) else value
        if not values.flags.c_contiguous:
            raise self.fail(known, "be C-contiguous", value)
        if values.size and values.dtype.kind != "b":
            self.check_values(values, known)
        return value

    def check_values(self, value: np.ndarray, known: Known) -> None:
        # The extremes need one pass each and no temporary array.
        low, high = value.min(), value.max()
        if self.floats == "finite" and not (np.isfinite(low) and np.isfinite(high)):
            raise self.fail(known, "be finite numbers")
        if self.floats == "extended" and np.isnan(low):
            raise self.fail(known, "not be NaN")
        below = known.size(self.below)
        too_low = low < self.least or (self.above is not None and not low > self.above)
        if too_low or high > self.most or (below is not None and not high < below):
            first = f"[{self.least}" if self.above is None else f"({self.above}"
            last = f"{self.most}]" if below is None else f"{below})"
            raise self.fail(known, f"lie in {first}, {last}", (low if too_low else high).item())
        if self.ascending and np.any(value[1:] <= value[:-1]):
            raise self.fail(known, "ascend")


@dataclass(frozen=True)
class Ids(Array):
    """Integers in [least, below)."""

    least: float = 0


@dataclass(frozen=True)
class Csr(Array):
    """A finite float32 CSR matrix. `Reader.csr` has checked that it is canonical."""

    dtype: Any = np.float32
    dims: tuple[Dim, ...] = (None, None)

    containers: ClassVar[Any] = (sp.csr_matrix,)

    def read(self, value: Any, known: Known) -> Any:
        super().read(value, known)
        if sp.issparse(value):
            count_declared(value.shape[1], f"columns of {self.saved_key} of {known.name}")
        return value


@dataclass(frozen=True)
class Rows(Csr):
    """Features: a float32 array or CSR matrix."""

    containers: ClassVar[Any] = (np.ndarray, sp.csr_matrix)


# --- several values -------------------------------------------------------------


@dataclass(frozen=True)
class Strings(Field):
    """A list of strings, `n` of them if given."""

    n: Dim = None

    def read(self, value: Any, known: Known) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.fail(known, "be a list of texts", value)
        if not known.fits((len(value),), (self.n,)):
            raise self.fail(known, f"be {known.size(self.n)} texts", len(value))
        return list(value)

    def written(self, value: Any) -> list[str]:
        return list(value)


@dataclass(frozen=True)
class List(Field):
    """A list, of `n` items if given, that all obey the field `item`, whose name is ignored."""

    item: Field = Field("")
    n: Dim = None

    def written(self, value: Any) -> list[Any]:
        return [self.item.written(v) for v in value]

    def read(self, value: Any, known: Known) -> Any:
        if not isinstance(value, list) or not known.fits((len(value),), (self.n,)):
            n = known.size(self.n)
            raise self.fail(known, "be a list" if n is None else f"be a list of {n}", value)
        item = replace(self.item, key=self.saved_key)
        return [item.checked(v, known) for v in value]


@dataclass(frozen=True)
class Each(Field):
    """A dict whose values all obey the field `item`, whose name is ignored.

    Parameters
    ----------
    item : Field
    keys : sequence of str, optional
        The keys to read; all by default.
    every : bool
        Whether every key is required.
    """

    item: Field = Field("")
    keys: Sequence[str] | Mapping[str, Any] | None = None
    every: bool = False

    def written(self, value: Any) -> dict[str, Any]:
        return {key: self.item.written(v) for key, v in value.items()}

    def read(self, value: Any, known: Known) -> dict[str, Any]:
        within = known.within(self.saved_key, value)
        for key in value if self.keys is None else self.keys:
            if self.every or value.get(key) is not None:
                replace(self.item, name=key, key=key).take(value, within)
        return within.values


@dataclass(frozen=True)
class Group(Field):
    """A dict with a value for each of `fields`."""

    fields: tuple[Field, ...] = ()

    def written(self, value: Any) -> dict[str, Any]:
        state: dict[str, Any] = {}
        for field in self.fields:
            field.put(SimpleNamespace(**value), state)
        return state

    def read(self, value: Any, known: Known) -> dict[str, Any]:
        within = known.within(self.saved_key, value)
        for field in self.fields:
            field.take(value, within)
        return within.values


@dataclass(frozen=True)
class Object(Field):
    """An object of a class or a subclass; `links` are the sizes that it shares with the enclosing object."""

    cls: Any = None
    links: Links = ()

    def read(self, value: Any, known: Known) -> Any:
        links = self.links if isinstance(self.links, Mapping) else {name: name for name in self.links}
        if isinstance(value, Stored) and issubclass(value.cls, self.cls):
            value = value.read({theirs: known[ours] for theirs, ours in links.items() if ours in known.sizes})
        if not isinstance(value, self.cls):
            raise self.fail(known, f"be of class {self.cls.__name__}", value)
        sizes = value.named_sizes()
        for theirs, ours in links.items():
            n = sizes.get(theirs)
            if n is not None and known.sizes.setdefault(ours, n) != n:
                what = {"d": "features", "L": "labels"}.get(ours, ours)
                raise self.fail(known, f"be of {known[ours]} {what}", n)
        return value


# --- rules ------------------------------------------------------------------------


def check_csr(indptr: np.ndarray, indices: np.ndarray, n_columns: int, name: str) -> None:
    """Raise ValueError unless each row has ascending, distinct columns below `n_columns`.

    SciPy's compiled routines rely on that without a check.
    """
    check_indptr(indptr, len(indices), f"indptr of {name}")
    if not len(indices):
        return
    if indices.min() < 0 or indices.max() >= n_columns:
        raise ValueError(f"indices of {name} must lie in [0, {n_columns})")
    back = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
    if len(back) and not np.array_equal(indptr[np.searchsorted(indptr, back)], back):
        raise ValueError(f"indices of {name} must ascend within a row")


def check_indptr(indptr: np.ndarray, end: int, name: str) -> None:
    """Raise ValueError unless `indptr` is non-decreasing from 0 to `end`."""
    if len(indptr) == 0 or indptr[0] != 0 or indptr[-1] != end or np.any(indptr[1:] < indptr[:-1]):
        raise ValueError(f"{name} must not decrease from 0 to {end}")


def _is_plain(value: Any) -> bool:
    if isinstance(value, (dict, list)):
        return all(map(_is_plain, value.values() if isinstance(value, dict) else value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biu" or (value.dtype.kind == "f" and bool(np.isfinite(value).all()))
    return value is None or isinstance(value, (bool, int, float, str))


def shown(value: Any) -> str:
    """A value of a saved model, shortened for a message."""
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"{value.dtype} {value.shape}"
    plain = value is None or isinstance(value, (bool, int, float, str))
    return f"{value!r:.80}" if plain else type(value).__name__
