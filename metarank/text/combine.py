"""How a label's own vector and its encoded name are combined: one formula each, for torch and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Rows = TypeVar("Rows")


def combined(
    combine: str,
    ids: Rows | None,
    names: Rows | None,
    scale: Any = None,
    project: Callable[[Rows, Rows], Rows] | None = None,
) -> Rows:
    """f of labels, (r, E).

    * "id": ``f = f_id``;
    * "text": ``f = f_text``;
    * "gile": ``f = w * f_text``;
    * "concat": ``f = tanh(W [f_id; f_text] + c)``, which `project` computes;
    * "lale": ``f = f_id * f_text``, entry by entry.

    Parameters
    ----------
    combine : str
    ids, names : float tensors or arrays (r, E), or None where `combine` has no use for them
        f_id and f_text.
    scale : tensor or array (E,)
        w, for "gile".
    project : callable
        Of (ids, names), for "concat".

    Examples
    --------
    >>> import numpy as np
    >>> combined("lale", np.array([[1.0, 2.0]]), np.array([[3.0, 0.5]]))
    array([[3., 1.]])
    """
    if combine == "id":
        assert ids is not None
        return ids
    assert names is not None
    if combine == "text":
        return names
    if combine == "gile":
        return scale * names  # type: ignore[no-any-return]
    assert ids is not None
    if combine == "concat":
        assert project is not None
        return project(ids, names)
    return ids * names  # type: ignore[operator, no-any-return]
