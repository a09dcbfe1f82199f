"""What a report of a fault should say of the machine and the installation."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, overload

from metarank._util.threads import available_cores
from metarank._util.version import __version__

_LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "lightgbm": "lightgbm",
    "faiss-cpu": "faiss",
}


@overload
def show_config(as_dict: Literal[True]) -> dict[str, Any]: ...
@overload
def show_config(as_dict: Literal[False] = False) -> None: ...
def show_config(as_dict: bool = False) -> dict[str, Any] | None:
    """Print, or return, what metarank runs on: versions, level of the processor, threads and their libraries.

    Parameters
    ----------
    as_dict : bool, default=False
        Return a dict and print nothing.

    Returns
    -------
    dict or None
        ``versions``: of metarank, Python and the libraries below it by name, None where one is absent;
        ``platform``: operating system and processor; ``cpu_level``: whose kernels are used;
        ``cpu_levels``: those this processor has, the least first (``METARANK_CPU_LEVEL`` forces one of them);
        ``compiler`` of the core; ``threads``: cores this process may use; ``thread_pools``: for each library
        of OpenMP and BLAS in this process its kind (``user_api``), name, version, threads and file.

    Raises
    ------
    TypeError
        If `as_dict` is no bool.

    Notes
    -----
    The libraries are imported to tell which thread pools they bring.

    Examples
    --------
    >>> import metarank
    >>> found = metarank.show_config(as_dict=True)
    >>> found["versions"]["metarank"] == metarank.__version__
    True
    >>> found["cpu_level"] in found["cpu_levels"]
    True
    """
    if not isinstance(as_dict, bool):
        raise TypeError(f"as_dict must be True or False, got {as_dict!r:.80}")
    found = _config()
    if as_dict:
        return found
    print("\n".join(_lines(found)))
    return None


def _config() -> dict[str, Any]:
    from threadpoolctl import threadpool_info

    from metarank import _core

    versions: dict[str, str | None] = {"metarank": __version__, "python": platform.python_version()}
    for name, module in _LIBRARIES.items():
        try:
            import_module(module)
            versions[name] = version(name)
        except (ImportError, PackageNotFoundError):
            versions[name] = getattr(sys.modules.get(module), "__version__", None)
    pools = [
        {
            "user_api": pool["user_api"],
            "name": pool["internal_api"],
            "version": pool["version"],
            "threads": pool["num_threads"],
            "file": os.path.basename(pool["filepath"]),
        }
        for pool in threadpool_info()
    ]
    return {
        "versions": versions,
        "platform": platform.platform(),
        "cpu_level": _core.cpu_level(),
        "cpu_levels": _core.cpu_levels(),
        "compiler": _core.compiler(),
        "threads": available_cores(),
        "thread_pools": sorted(pools, key=lambda pool: (pool["user_api"], pool["file"])),
    }


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [f"{name:<14}{number or 'absent'}" for name, number in found["versions"].items()]
    lines += [
        f"{'platform':<14}{found['platform']}",
        f"{'cpu level':<14}{found['cpu_level']} (of {', '.join(found['cpu_levels'])})",
        f"{'compiler':<14}{found['compiler']}",
        f"{'threads':<14}{found['threads']}",
    ]
    for pool in found["thread_pools"]:
        named = f"{pool['name']} {pool['version'] or ''}".strip()
        lines.append(f"{pool['user_api']:<14}{named}, {pool['threads']} threads, {pool['file']}")
    return lines
