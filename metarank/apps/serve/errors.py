"""`Refused`: a request that gets an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Refused(Exception):
    """An answer other than 200.

    Parameters
    ----------
    status : int
        Of HTTP.
    message : str
        What the reply says.
    field : str or None
        The field of the request that breaks a rule.
    retry_after : int or None
        Seconds after which another try may do better.
    reason : str
        A word for the count of refusals.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        field: str | None = None,
        retry_after: int | None = None,
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
        self.retry_after = retry_after
        self.reason = reason


def invalid(field: str, message: str) -> Refused:
    """422: a field of the request breaks a rule, which `message` states.

    Examples
    --------
    >>> invalid("k", "k must be a positive integer, got 0").status
    422
    """
    return Refused(422, message, field=field, reason="invalid")


@contextmanager
def refusing(field: str) -> Iterator[None]:
    """What the library refuses inside the block, by ValueError or TypeError, is the fault of a field.

    Examples
    --------
    >>> try:
    ...     with refusing("k"):
    ...         raise ValueError("k must be positive, got 0")
    ... except Refused as refused:
    ...     print(refused.status, refused.message)
    422 k must be positive, got 0
    """
    try:
        yield
    except (ValueError, TypeError) as error:
        raise invalid(field, str(error)) from None
