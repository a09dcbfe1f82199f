"""Facts about the machine and the installation for bug reports."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from metarank._util.parameters import check_flag
from metarank._util.threads import available_cores
from metarank._util.version import __version__

_LIBRARIES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "lightgbm": "lightgbm",
    "faiss-cpu": "faiss",
}


def show_config(as_dict: bool = False) -> Any:
    """Print as JSON, or return, what metarank runs on: versions, processor, threads and their libraries.

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
        If `as_dict` is not a bool.

    Notes
    -----
    The libraries are imported to tell which thread pools they bring.

    Examples
    --------
    >>> import metarank
    >>> config = metarank.show_config(as_dict=True)
    >>> config["versions"]["metarank"] == metarank.__version__
    True
    >>> config["cpu_level"] in config["cpu_levels"]
    True
    """
    check_flag("as_dict", as_dict)
    from threadpoolctl import threadpool_info

    from metarank import _core

    versions: dict[str, str | None] = {"metarank": __version__, "python": platform.python_version()}
    for name, module in _LIBRARIES.items():
        try:
            import_module(module)
            versions[name] = version(name)
        except (ImportError, PackageNotFoundError):
            versions[name] = getattr(sys.modules.get(module), "__version__", None)
    names = {"user_api": "user_api", "internal_api": "name", "version": "version", "num_threads": "threads"}
    pools = [
        {name: pool[key] for key, name in names.items()} | {"file": os.path.basename(pool["filepath"])}
        for pool in threadpool_info()
    ]
    config = {
        "versions": versions,
        "platform": platform.platform(),
        "cpu_level": _core.cpu_level(),
        "cpu_levels": _core.cpu_levels(),
        "compiler": _core.compiler(),
        "threads": available_cores(),
        "thread_pools": sorted(pools, key=lambda pool: (pool["user_api"], pool["file"])),
    }
    if as_dict:
        return config
    print(json.dumps(config, indent=2))
    return None
