"""What the extra `text` installs: imported where it is needed, never before."""

from __future__ import annotations

import importlib


def require_extra(*modules: str) -> None:
    """Import these, or say what to install.

    Raises
    ------
    ImportError

    Examples
    --------
    >>> require_extra("json")
    >>> require_extra("a_missing_module")
    Traceback (most recent call last):
    ImportError: metarank.text needs a_missing_module, which is not installed; install the extra 'text', as by
    python -m pip install 'metarank-ltr[text]'
    """
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ImportError(
                f"metarank.text needs {module}, which is not installed; install the extra 'text', as by\n"
                "python -m pip install 'metarank-ltr[text]'",
                name=module,
            ) from error
