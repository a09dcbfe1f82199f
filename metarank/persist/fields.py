"""The kinds of fields of a `Spec`. Each writes one value of an object and checks it when it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sp

from metarank._util.parameters import seed_of
from metarank._util.threads import MOST_THREADS
from metarank.persist.classes import class_of
from metarank.persist.limits import MOST, allowance

# A dimension: a number, the name of a size, None for any size, or a function of `Known` that computes it.
Dim: TypeAlias = "int | str | Callable[[Any], int] | None"
# "finite" allows neither infinities nor NaN, "extended" allows infinities, "any" allows both.
Floats: TypeAlias = Literal["finite", "extended", "any"]
_REQUIRED: Any = object()


class Known:
    """The state of reading one object: the values read so far, by attribute, and the sizes, by name.

    Parameters
    ----------
    name : str
        Name of the object in error messages.
    sizes : dict
    cls : type, optional
        Class of the object.
    made : object, optional
        The object itself, where it already exists.
    outer : Known, optional
        State of the enclosing object; it supplies the values that are not found here.
    """

    def __init__(
        self, name: str, sizes: dict[str, int], cls: Any = None, made: Any = None, outer: Known | None = None
    ) -> None:
        self.name: str = name
        self.sizes: dict[str, int] = sizes
        self.cls: Any = cls
        self.made: Any = made
        self.outer: Known | None = outer
        self.values: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name in self.values:
            return self.values[name]
        return getattr(self.made if self.made is not None else self.outer, name)

    def __getitem__(self, size: str) -> int:
        return self.sizes[size]

    def within(self, name: str) -> Known:
        """The state for a nested mapping; it shares the sizes."""
        return Known(f"{self.name}.{name}", self.sizes, self.cls, outer=self)

    def size(self, dim: Dim) -> int | None:
        """A dimension as a number; None if any size is allowed."""
        if isinstance(dim, str):
            return self.sizes.get(dim)
        try:
            return dim(self) if callable(dim) else dim
        except KeyError:  # it depends on a size that is not known yet
            return None

    def fits(self, found: tuple[int, ...], dims: tuple[Dim, ...]) -> bool:
        """Whether a shape matches the dimensions. Records named sizes that were not known before."""
        if len(found) != len(dims):
            return False
        for n, dim in zip(found, dims):
            if self.size(dim) not in (None, n):
                return False
            if isinstance(dim, str):
                self.sizes[dim] = n
        return True

    def join(self, found: Mapping[str, int], links: Links, key: str) -> None:
        """Record the sizes of a nested object; ValueError if they contradict those known here."""
        for theirs, ours in _pairs(links):
            n = found.get(theirs)
            if n is not None and self.sizes.setdefault(ours, n) != n:
                what = {"d": "features", "L": "labels"}.get(ours, ours)
                raise ValueError(f"{key} of {self.name} must be of {self.sizes[ours]} {what}, got {n}")

    def fail(self, key: str, rule: str, value: Any) -> ValueError:
        """The error for a value that breaks its rule."""
        return ValueError(f"{key} of {self.name} must {rule}, got {shown(value)}")


# Names of the sizes that a nested object shares with the enclosing one; a mapping where the names differ.
Links: TypeAlias = "Sequence[str] | Mapping[str, str]"


def _pairs(links: Links) -> list[tuple[str, str]]:
    return list(links.items()) if isinstance(links, Mapping) else [(name, name) for name in links]


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
        Whether the value may be None or missing.
    older : optional
        The default for older files, which lack the value; or a function that makes it.
    omits_none : bool
        Whether None is left out of the saved form, as for a value that older versions do not know.
    when : function, optional
        Tells from the object, or from `Known`, whether it has this value at all.
    of, into : functions, optional
        Convert the object to the saved value, and a value that was read to the attribute.
    """

    name: str
    _: KW_ONLY
    key: str | None = None
    optional: bool = False
    older: Any = _REQUIRED
    omits_none: bool = False
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
            if value is not None or not self.omits_none:
                state[self.saved_key] = None if value is None else self.written(value)

    def take(self, state: Mapping[str, Any], known: Known) -> None:
        """Read the value from a saved form into `known`; ValueError if it breaks its rule."""
        if self.when is not None and not self.when(known):
            return
        key = self.saved_key
        if key not in state and self.older is not _REQUIRED:
            value = self.older() if callable(self.older) else self.older
        elif self.optional and state.get(key) is None:
            value = None
        elif key not in state:
            raise ValueError(f"{known.name} must have a value {key!r}")
        else:
            value = self.checked(state[key], known)
        known.values[self.name] = value

    def measure(self, obj: Any, known: Known) -> None:
        """Record the sizes that the value of an object has."""
        if self.when is None or self.when(obj):
            value = self.value_of(obj)
            if value is not None:
                self.tell(value, known)

    def checked(self, value: Any, known: Known) -> Any:
        """The attribute for a saved value, which is checked first."""
        found = self.read(value, known)
        return found if self.into is None else self.into(found)

    def written(self, value: Any) -> Any:
        return value

    def read(self, value: Any, known: Known) -> Any:
        raise NotImplementedError

    def tell(self, value: Any, known: Known) -> None:
        pass

    def fail(self, known: Known, rule: str, value: Any) -> ValueError:
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

    def tell(self, value: Any, known: Known) -> None:
        if self.size is not None:
            known.sizes.setdefault(self.size, int(value))


@dataclass(frozen=True)
class Declared(Integer):
    """A number of features, labels or rows that no array of the file has to confirm."""

    def read(self, value: Any, known: Known) -> int:
        allowed = allowance()
        if type(value) is int and value > allowed.each:
            raise self.fail(known, f"be an integer in [0, {allowed.each}]", value)
        found = super().read(value, known)
        allowed.take(found)
        return found


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
class Strings(Field):
    """A list of strings, `n` of them if given."""

    n: Dim = None

    def read(self, value: Any, known: Known) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise self.fail(known, "be a list of texts", value)
        if not known.fits((len(value),), (self.n,)):
            raise ValueError(
                f"{self.saved_key} of {known.name} must be {known.size(self.n)} texts, got {len(value)}"
            )
        return list(value)

    def written(self, value: Any) -> list[str]:
        return list(value)

    def tell(self, value: Any, known: Known) -> None:
        known.fits((len(value),), (self.n,))


@dataclass(frozen=True)
class Plain(Field):
    """A plain value that the class itself checks. A tuple is saved as a list."""

    def value_of(self, obj: Any) -> Any:
        value = super().value_of(obj)
        return list(value) if isinstance(value, tuple) else value

    def read(self, value: Any, known: Known) -> Any:
        if not _is_plain(value):
            raise self.fail(known, "be a plain value", value)
        return tuple(value) if isinstance(value, list) else value


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
    omits : tuple of str
        Parameters that are not saved where they are None or 0: models without them are as older versions
        save them.
    older : tuple of (str, value)
        What parameters that older versions did not know were for them.
    check : function of the estimator, optional
        Raises ValueError if a parameter is out of range.
    """

    name: str = "params"
    without: tuple[str, ...] = ()
    tuples: tuple[str, ...] = ()
    seeded: int | None = None
    omits: tuple[str, ...] = ()
    older: tuple[tuple[str, Any], ...] = ()
    check: Callable[[Any], None] | None = None

    def value_of(self, obj: Any) -> dict[str, Any]:
        params = obj.get_params(deep=False) if self.of is None else self.of(obj)
        if self.seeded is not None:
            params = {**params, "random_state": obj.random_state_}
        return {
            k: v
            for k, v in params.items()
            if k not in self.without and not (k in self.omits and v in (None, 0))
        }

    def take(self, state: Mapping[str, Any], known: Known) -> None:
        super().take(state, known)
        made = known.made = known.cls(**known.values.pop(self.name))
        if self.check is not None:
            self.check(made)
        if self.seeded is not None:
            made.random_state_ = seed_of(made.random_state, self.seeded)

    def read(self, value: Any, known: Known) -> dict[str, Any]:
        within = known.within(self.saved_key)
        if not isinstance(value, Mapping):
            raise ValueError(f"{within.name} must be a mapping of names to values, got {value!r:.80}")
        names = set(known.cls._get_param_names())
        unknown = sorted(map(str, set(value) - names))
        if unknown:
            raise ValueError(
                f"{within.name} must be parameters of {known.cls.__name__}, got {unknown[0]!r:.80}"
            )
        for key, param in value.items():
            if not _is_plain(param):
                raise known.fail(key, "be plain values", param)
            if key == "n_jobs" and param is not None and not (type(param) is int and param <= MOST_THREADS):
                raise known.fail(key, f"be at most {MOST_THREADS}", param)
        older = {k: v for k, v in self.older if k in names}
        read = {k: tuple(v) if k in self.tuples and isinstance(v, list) else v for k, v in value.items()}
        return older | read


# --- arrays ---------------------------------------------------------------------


@dataclass(frozen=True)
class Array(Field):
    """A C-contiguous array of one of the dtypes and the given dimensions, with values in [least, most].

    All values are greater than `above` and less than `below`, where these are given.
    """

    dtype: Any = None
    dims: tuple[Dim, ...] = (None,)
    least: float = -math.inf
    most: float = math.inf
    above: float | None = None
    below: Any = None
    floats: Floats = "finite"

    def read(self, value: Any, known: Known) -> np.ndarray:
        dtypes = [np.dtype(d) for d in (self.dtype if isinstance(self.dtype, tuple) else (self.dtype,))]
        if not isinstance(value, np.ndarray) or value.dtype not in dtypes:
            raise self.fail(known, f"be an array of {' or '.join(map(str, dtypes))}", value)
        if not known.fits(value.shape, self.dims):
            raise self.fail(known, f"have shape {_written(self.dims, known)}", value)
        if not value.flags.c_contiguous:
            raise self.fail(known, "be C-contiguous", value)
        if value.size and value.dtype.kind != "b":
            self.check_values(value, known)
        return value

    def tell(self, value: Any, known: Known) -> None:
        known.fits(value.shape, self.dims)

    def check_values(self, value: np.ndarray, known: Known) -> None:
        # The extremes need one pass each and no temporary array.
        low, high = value.min(), value.max()
        name = f"{self.saved_key} of {known.name}"
        if value.dtype.kind == "f":
            if self.floats == "finite" and not (np.isfinite(low) and np.isfinite(high)):
                raise ValueError(f"{name} must be finite numbers")
            if self.floats == "extended" and np.isnan(low):
                raise ValueError(f"{name} must not be NaN")
        if self.above is not None and not low > self.above:
            rule = "positive" if self.above == 0 else f"greater than {self.above}"
            raise ValueError(f"{name} must be {rule}, got {low}")
        if self.below is not None and not high < self.below:
            raise ValueError(f"{name} must be less than {self.below}, got {high}")
        if (low < self.least) or (high > self.most):
            rule = f"lie in [{self.least}, {self.most}]" if math.isfinite(self.most) else "not be negative"
            raise ValueError(f"{name} must {rule}, got {low if low < self.least else high}")


@dataclass(frozen=True)
class Ids(Array):
    """Integers in [first, below). If `ascending`, they are distinct and in order."""

    below: Dim = None
    first: int = 0
    ascending: bool = False

    def check_values(self, value: np.ndarray, known: Known) -> None:
        below = known.size(self.below)
        for bad in (value.min(), value.max()):
            if bad < self.first or (below is not None and bad >= below):
                raise ValueError(
                    f"{self.saved_key} of {known.name} must lie in [{self.first}, {below}), got {bad}"
                )
        if self.ascending and np.any(value[1:] <= value[:-1]):
            raise ValueError(f"{self.saved_key} of {known.name} must ascend")


@dataclass(frozen=True)
class Indptr(Field):
    """int64 (n + 1,), non-decreasing from 0 to `end`: the bounds of n lists."""

    n: Dim = None
    end: Dim = None

    def read(self, value: Any, known: Known) -> np.ndarray:
        if not isinstance(value, np.ndarray) or value.dtype != np.int64 or value.ndim != 1:
            raise self.fail(known, "be an array of int64 of one dimension", value)
        if not known.fits((len(value) - 1,), (self.n,)):
            raise self.fail(known, f"have one entry more than {known.size(self.n)}", value)
        check_indptr(value, known.size(self.end), f"{self.saved_key} of {known.name}")
        return value

    def tell(self, value: Any, known: Known) -> None:
        known.fits((len(value) - 1,), (self.n,))


@dataclass(frozen=True)
class Csr(Field):
    """A finite float32 CSR matrix. `Reader.csr` has checked that it is canonical."""

    dims: tuple[Dim, ...] = (None, None)

    def read(self, value: Any, known: Known) -> Any:
        if not isinstance(value, sp.csr_matrix) or value.data.dtype != np.float32:
            raise self.fail(known, "be a sparse matrix of float32", value)
        if not known.fits(value.shape, self.dims):
            raise self.fail(known, f"have shape {_written(self.dims, known)}", value)
        if value.nnz and not (np.isfinite(value.data.min()) and np.isfinite(value.data.max())):
            raise ValueError(f"{self.saved_key} of {known.name} must be finite numbers")
        allowed = allowance()
        if value.shape[1] > allowed.each:
            raise self.fail(known, f"have at most {allowed.each} columns", value)
        allowed.take(value.shape[1])
        return value

    def tell(self, value: Any, known: Known) -> None:
        known.fits(value.shape, self.dims)


@dataclass(frozen=True)
class Rows(Csr):
    """Features: a float32 array or CSR matrix."""

    def read(self, value: Any, known: Known) -> Any:
        if sp.issparse(value):
            return super().read(value, known)
        return Array(self.name, np.float32, self.dims, key=self.key).read(value, known)


# --- containers of fields ------------------------------------------------------------


class Nested(Field):
    """Several fields of one object, saved in a nested mapping."""

    fields: tuple[Field, ...]

    def __init__(self, name: str, *fields: Field, **options: Any) -> None:
        super().__init__(name, **options)
        object.__setattr__(self, "fields", fields)

    def put(self, obj: Any, state: dict[str, Any]) -> None:
        state[self.saved_key] = self.state_of(obj)

    def take(self, state: Mapping[str, Any], known: Known) -> None:
        known.values |= self.values_in(state.get(self.saved_key), known.within(self.saved_key))

    def measure(self, obj: Any, known: Known) -> None:
        for field in self.fields:
            field.measure(obj, known)

    def state_of(self, obj: Any) -> dict[str, Any]:
        state: dict[str, Any] = {}
        for field in self.fields:
            field.put(obj, state)
        return state

    def values_in(self, state: Any, within: Known) -> dict[str, Any]:
        for field in self.fields:
            field.take(_mapping(state, within), within)
        return within.values


class Entries(Nested):
    """An attribute that is a dict, with one field for each entry."""

    put, take, measure = Field.put, Field.take, Field.measure

    def written(self, value: Any) -> dict[str, Any]:
        return self.state_of(SimpleNamespace(**value))

    def read(self, value: Any, known: Known) -> dict[str, Any]:
        return self.values_in(value, known.within(self.saved_key))

    def tell(self, value: Any, known: Known) -> None:
        super().measure(SimpleNamespace(**value), known)


class Group(Nested):
    """Fields, saved beside the others, of which `build` makes one attribute."""

    build: Callable[..., Any]

    def __init__(self, name: str, build: Callable[..., Any], *fields: Field, **options: Any) -> None:
        super().__init__(name, *fields, **options)
        object.__setattr__(self, "build", build)

    def put(self, obj: Any, state: dict[str, Any]) -> None:
        state.update(self.state_of(self.value_of(obj)))

    def take(self, state: Mapping[str, Any], known: Known) -> None:
        within = Known(known.name, known.sizes, known.cls, outer=known)
        known.values[self.name] = self.build(**self.values_in(state, within))

    def measure(self, obj: Any, known: Known) -> None:
        super().measure(self.value_of(obj), known)


@dataclass(frozen=True)
class Derived(Field):
    """A value computed from those read before, for the `build` of a `Group`. It is not saved."""

    follows: Callable[[Known], Any] = lambda known: None

    def put(self, obj: Any, state: dict[str, Any]) -> None:
        pass

    def take(self, state: Mapping[str, Any], known: Known) -> None:
        known.values[self.name] = self.follows(known)


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

    def tell(self, value: Any, known: Known) -> None:
        known.fits((len(value),), (self.n,))
        for v in value:
            self.item.tell(v, known)


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
        within = known.within(self.saved_key)
        state = _mapping(value, within)
        for key in state if self.keys is None else self.keys:
            if self.every or state.get(key) is not None:
                replace(self.item, name=key, key=key).take(state, within)
        return within.values


@dataclass(frozen=True)
class Object(Field):
    """An object of a class or a subclass.

    Parameters
    ----------
    cls : type, or its name in the register of classes
    links : names of sizes
        Sizes that it shares with the enclosing object.
    inline : bool
        Whether its saved form is nested here without the name of its class; `cls` then has a `Spec`.
    """

    cls: Any = None
    links: Links = ()
    inline: bool = False

    def written(self, value: Any) -> Any:
        return value.get_state() if self.inline else value

    def read(self, value: Any, known: Known) -> Any:
        cls: Any = class_of(self.cls) if isinstance(self.cls, str) else self.cls
        if not self.inline:
            if not isinstance(value, cls):
                raise self.fail(known, f"be of class {cls.__name__}", value)
            known.join(value.named_sizes(), self.links, self.saved_key)
            return value
        sizes = {theirs: known.sizes[ours] for theirs, ours in _pairs(self.links) if ours in known.sizes}
        found = cls.restored(value, sizes)
        known.join(sizes, self.links, self.saved_key)
        return found

    def tell(self, value: Any, known: Known) -> None:
        known.join(value.named_sizes(), self.links, self.saved_key)


# --- rules ------------------------------------------------------------------------


def check_indptr(indptr: np.ndarray, end: int | None, name: str) -> None:
    """Raise ValueError unless `indptr` is non-decreasing from 0 to `end`."""
    if (
        len(indptr) == 0
        or indptr[0] != 0
        or (end is not None and indptr[-1] != end)
        or np.any(indptr[1:] < indptr[:-1])
    ):
        raise ValueError(f"{name} must not decrease from 0 to {end}")


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


def _mapping(value: Any, known: Known) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{known.name} must be a mapping of names to values, got {value!r:.80}")
    return value


def _written(dims: tuple[Dim, ...], known: Known) -> str:
    sizes = map(known.size, dims)
    return f"({', '.join('any' if n is None else str(n) for n in sizes)})"


def _is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "biu" or (value.dtype.kind == "f" and bool(np.isfinite(value).all()))
    return value is None or isinstance(value, (bool, int, float, str))


def shown(value: Any) -> str:
    """A value of a saved model, shortened for a message."""
    if isinstance(value, np.ndarray) or sp.issparse(value):
        return f"{value.dtype} {value.shape}"
    plain = value is None or isinstance(value, (bool, int, float, str))
    return f"{value!r:.80}" if plain else type(value).__name__
