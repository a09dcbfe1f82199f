"""`Saved` and `Spec`: what a class saves, declared once.

A class lists the fields of its saved form; `get_state`, `from_state`, the sizes that it is of and what
pickle leaves out follow from the list. A model folder may come from anywhere: each field says the rule that
its value keeps, and nothing is taken as it stands. What the compiled core checks when it is built over the
arrays is not checked twice.

A dimension given as a name, such as "L", is one number throughout an object, and where `links` name it, the
same in an object within. By convention "d" are features, "L" labels and "rows" the training rows kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from metarank._util.lazy import lazy
from metarank.persist.classes import class_in_family, register_in_family
from metarank.persist.fields import Field, Known

S = TypeVar("S", bound="Saved")
T = TypeVar("T")


class Spec:
    """The fields of a class.

    Parameters
    ----------
    *fields : Field
        Values that the constructor takes are given to it, the others become attributes, in this order.
    check : function of Known, optional
        Raises ValueError where values do not fit together in a way that no field can say; called before the
        object is made.

    Examples
    --------
    >>> import numpy as np
    >>> from metarank.persist.fields import Array, Ids
    >>> class Counts(Saved):
    ...     saved = Spec(Array("counts", np.int64, ("L",)), Ids("best", np.int32, (None,), below="L"))
    ...     def __init__(self, counts, best):
    ...         self.counts, self.best = counts, best
    >>> state = Counts(np.arange(3), np.array([2], np.int32)).get_state()
    >>> Counts.from_state(state).counts
    array([0, 1, 2])
    >>> Counts.from_state(state | {"best": np.array([3], np.int32)})
    Traceback (most recent call last):
    ValueError: best of Counts must lie in [0, 3), got 3
    """

    def __init__(self, *fields: Field, check: Callable[[Known], None] | None = None) -> None:
        self.fields = fields
        self.check = check

    def extended(self, *fields: Field) -> Spec:
        """This one with further fields."""
        return Spec(*self.fields, *fields, check=self.check)

    def state_of(self, obj: Any) -> dict[str, Any]:
        """The values of an object by key: plain ones, lists, dicts, arrays, matrices and objects."""
        state: dict[str, Any] = {}
        for field in self.fields:
            field.put(obj, state)
        return state

    def sizes_of(self, obj: Any) -> dict[str, int]:
        """What the named dimensions are of an object."""
        known = Known(type(obj).__name__, {}, made=obj)
        for field in self.fields:
            field.measure(obj, known)
        return known.sizes

    def restored(self, cls: type[T], state: Any, sizes: dict[str, int]) -> T:
        """The inverse of `state_of`; `sizes` are those known already, and are added to.

        Raises
        ------
        ValueError
            Where a value is missing or does not keep its rule.
        """
        if not isinstance(state, Mapping):
            raise ValueError(f"{cls.__name__} must be a mapping of names to values, got {state!r:.80}")
        known = Known(cls.__name__, sizes, cls=cls)
        for field in self.fields:
            field.take(state, known)
        if self.check is not None:
            self.check(known)
        values = known.values
        made: Any = known.made
        if made is None:
            wanted = inspect.signature(cls).parameters
            made = cls(**{name: values.pop(name) for name in list(values) if name in wanted})
        for name, value in values.items():
            setattr(made, name, value)
        if isinstance(made, Saved):
            made._restored()
        out: T = made
        return out


class Saved:
    """What can be part of a saved model: a class with a `Spec` named `saved`.

    One with `get_state` and `from_state` of its own needs none.

    Attributes
    ----------
    saved : Spec
    tag : str or None
        Where a value of a saved model may be of several classes: the key under which it says which.
        A base class sets it, and its subclasses are one family.
    """

    saved: ClassVar[Spec | None] = None
    tag: ClassVar[str | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.tag is not None and "tag" not in vars(cls):
            register_in_family(cls._family(), cls.saved_as(), cls)

    @classmethod
    def _family(cls) -> str:
        return next(base.__name__ for base in cls.__mro__ if vars(base).get("tag") is not None)

    @classmethod
    def saved_as(cls) -> str:
        """What a saved model calls the class within its family."""
        return cls.__name__

    def get_state(self) -> dict[str, Any]:
        """What `from_state` needs."""
        if self.saved is None:
            raise TypeError(f"{type(self).__name__} must implement get_state to be saved")
        tagged = {} if self.tag is None else {self.tag: self.saved_as()}
        return tagged | self.saved.state_of(self)

    @classmethod
    def from_state(cls: type[S], state: Any) -> S:
        """The inverse of `get_state`; of a class with a `tag`, the object of the class that is said there."""
        return cls.restored(state, {})

    @classmethod
    def restored(cls: type[S], state: Any, sizes: dict[str, int]) -> S:
        """`from_state` where some sizes are known; those of the state are added to them."""
        if cls.tag is not None:
            if not isinstance(state, Mapping):
                raise ValueError(f"{cls.__name__} must be a mapping of names to values, got {state!r:.80}")
            found = class_in_family(cls._family(), state.get(cls.tag), cls.tag)
            if not issubclass(found, cls):
                raise ValueError(f"{cls.tag} must be a {cls.__name__}, got {found.__name__!r}")
            cls = found
        if cls.saved is None:
            raise TypeError(f"{cls.__name__} must implement from_state to be loaded")
        return cls.saved.restored(cls, state, sizes)

    def named_sizes(self) -> dict[str, int]:
        """The sizes that have a name in the spec."""
        return {} if self.saved is None else self.saved.sizes_of(self)

    def _restored(self) -> None:
        """Set what follows from the values that were saved, after they are set."""

    def __getstate__(self) -> Any:
        """For pickle and copies, without what is computed on first use."""
        state = super().__getstate__()
        if not isinstance(state, dict):
            return state
        return {name: value for name, value in state.items() if not _is_lazy(type(self), name)}


def _is_lazy(cls: type, name: str) -> bool:
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return isinstance(found, (lazy, cached_property))
