"""`Saved` and `Spec`: what a class saves, declared once.

A class lists the fields of its saved form, in the types of its attributes or in a `Spec`. `get_state`,
`from_state`, the object's sizes and what pickle leaves out follow from that list. A model folder is untrusted
input: each field states the rule for its value, and every value is checked when it is read. Only what the
compiled core checks for itself is not checked here.

A dimension with a name, such as "L", has one size throughout an object; `links` extend it to nested objects.
By convention "d" is the number of features, "L" of labels, and "rows" of the training rows that are kept.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from metarank._util.short_help import ShortHelp
from metarank.persist.fields import Field, Known
from metarank.persist.trust import register

S = TypeVar("S", bound="Saved")
T = TypeVar("T")


class Spec:
    """The fields of a class: those in the types of its attributes, and further ones.

    An attribute of the type ``Annotated[np.ndarray, Array("", np.float32)]`` is saved by that field, under
    its own name. Values that the constructor accepts are passed to it; the others are set as attributes, in
    order.

    Parameters
    ----------
    *fields : Field
        Those that follow the fields in the types of attributes.
    check : function of Known, optional
        Raises ValueError if values contradict each other in a way that no single field can express. It is
        called before the object is constructed.

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
        self.fields: tuple[Field, ...] = fields
        self.check = check

    def __set_name__(self, owner: type, name: str) -> None:
        self.fields = (*_annotated(owner), *self.fields)

    def extended(self, *fields: Field) -> Spec:
        """A copy with more fields."""
        return Spec(*self.fields, *fields, check=self.check)

    def state_of(self, obj: Any) -> dict[str, Any]:
        """The values of an object by key: plain values, lists, dicts, arrays, matrices and objects."""
        state: dict[str, Any] = {}
        for field in self.fields:
            field.put(obj, state)
        return state

    def restored(self, cls: type[T], state: Any, sizes: dict[str, int]) -> T:
        """The inverse of `state_of`. `sizes` holds the sizes known so far; new ones are added to it.

        Raises
        ------
        ValueError
            If a value is missing or breaks its rule.
        """
        if not isinstance(state, Mapping):
            raise ValueError(f"{cls.__name__} must be a mapping of names to values, got {state!r:.80}")
        known = Known(cls.__name__, sizes, cls)
        for field in self.fields:
            field.take(state, known)
        if self.check is not None:
            self.check(known)
        values, made = known.values, known.made
        if made is None:
            wanted = inspect.signature(cls).parameters
            made = cls(**{name: values.pop(name) for name in list(values) if name in wanted})
        for name, value in values.items():
            setattr(made, name, value)
        vars(made)["_named_sizes"] = sizes
        made._restored()
        out: T = made
        return out


class Saved(metaclass=ShortHelp):
    """Base of all classes that a saved model may contain. Each declares a `Spec` named `saved`.

    A class needs no spec if all saved attributes have a field in their types, or if it has `get_state` and
    `from_state`. Classes of metarank are registered.
    """

    saved: ClassVar[Spec | None] = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "saved" not in vars(cls) and (fields := _annotated(cls)):
            cls.saved = Spec(*fields)
        if cls.__module__.partition(".")[0] == "metarank":
            register(cls)

    def get_state(self) -> dict[str, Any]:
        """The state from which `from_state` restores the object."""
        if self.saved is None:
            raise TypeError(f"{type(self).__name__} must implement get_state to be saved")
        return self.saved.state_of(self)

    @classmethod
    def from_state(cls: type[S], state: Any) -> S:
        """The inverse of `get_state`."""
        if cls.saved is None:
            raise TypeError(f"{cls.__name__} must implement from_state to be loaded")
        return cls.saved.restored(cls, state, {})

    def named_sizes(self) -> dict[str, int]:
        """The sizes that an object had when it was loaded, by their names in the spec."""
        sizes: dict[str, int] = vars(self).get("_named_sizes", {})
        return sizes

    def _restored(self) -> None:
        """Compute what follows from the restored values."""

    def make_ready(self, encoder: Any = None) -> None:
        """Load what a model needs outside its folder; ValueError for an encoder that it does not have."""
        if encoder is not None:
            raise ValueError(f"encoder must be None, since this {type(self).__name__} was fitted without one")

    def __getstate__(self) -> Any:
        """State for pickle and copies, without values that are computed on first use."""
        state = super().__getstate__()
        if not isinstance(state, dict):
            return state
        cls = type(self)
        return {k: v for k, v in state.items() if not isinstance(getattr(cls, k, None), cached_property)}


def restored(cls: Any, state: Any, sizes: dict[str, int]) -> Any:
    """An object by its spec, given the sizes known so far, or by a `from_state` of its own."""
    read: Any = cls.from_state
    general: Any = Saved.from_state
    if cls.saved is None or read.__func__ is not general.__func__:
        return read(state)
    return cls.saved.restored(cls, state, sizes)


def _annotated(cls: type) -> list[Field]:
    """The fields in the types of a class's own attributes."""
    if not any("Annotated[" in str(hint) for hint in inspect.get_annotations(cls).values()):
        return []
    hints = inspect.get_annotations(cls, eval_str=True).items()
    return [replace(hint.__metadata__[0], name=name) for name, hint in hints if hasattr(hint, "__metadata__")]
