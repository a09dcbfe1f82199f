"""What an extra installs: imported where it is needed, never before."""

from __future__ import annotations

import importlib


def require_extra(extra: str, *modules: str) -> None:
    """Import these modules, which `extra` installs, or say what to install.

    Raises
    ------
    ImportError

    Examples
    --------
    >>> require_extra("text", "json")
    >>> require_extra("text", "a_missing_module")
    Traceback (most recent call last):
    ImportError: a_missing_module is not installed; install the extra 'text', as by
    python -m pip install 'metarank-ltr[text]'
    """
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ImportError(
                f"{module} is not installed; install the extra {extra!r}, as by\n"
                f"python -m pip install 'metarank-ltr[{extra}]'",
                name=module,
            ) from error
