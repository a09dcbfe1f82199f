"""What the control group of this process leaves it (Linux): containers are given their share by one.

joblib's `cpu_count` reads the quota of the topmost group alone, and no memory. Here the process's own group
counts, in version 1 and 2, and the limits of all groups above it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT, MEMBERSHIP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")
# Version 1 says so where there is no limit: the largest multiple of a page.
_UNLIMITED = 1 << 60


@cache
def cpu_limit(root: Path = ROOT, membership: Path = MEMBERSHIP) -> float | None:
    """CPUs the process may keep busy on the average, None where nothing limits it; read once.

    Examples
    --------
    >>> cpu_limit(Path("/missing")) is None
    True
    """
    limits = []
    for group in _groups("cpu", root, membership):
        quota, _, period = _read(group / "cpu.max").partition(" ")
        quota = quota or _read(group / "cpu.cfs_quota_us")
        period = period or _read(group / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period) > 0 and int(quota) > 0:
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def memory_left(root: Path = ROOT, membership: Path = MEMBERSHIP) -> int | None:
    """Bytes the group may still take, None where nothing limits it.

    Pages of files that were not used lately are given up on demand: they count as free.

    Examples
    --------
    >>> memory_left(Path("/missing")) is None
    True
    """
    left = []
    for group in _groups("memory", root, membership):
        limit = _read(group / "memory.max") or _read(group / "memory.limit_in_bytes")
        used = _read(group / "memory.current") or _read(group / "memory.usage_in_bytes")
        if limit.isdigit() and used.isdigit() and int(limit) < _UNLIMITED:
            left.append(max(0, int(limit) - max(0, int(used) - _inactive_file(group))))
    return min(left, default=None)


def _inactive_file(group: Path) -> int:
    counts = dict(line.split(" ", 1) for line in _read(group / "memory.stat").splitlines() if " " in line)
    text = counts.get("total_inactive_file", counts.get("inactive_file", "0"))
    return int(text) if text.isdigit() else 0


def _groups(controller: str, root: Path, membership: Path) -> Iterator[Path]:
    """Folders of the process's group of a controller and of those above.

    A container may see another path than it was started with: what is not there is skipped, the top is.
    """
    for line in _read(membership).splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            tops = [root, root / "unified"]
        elif controller in controllers.split(","):
            tops = [root / controllers, root / controller]
        else:
            continue
        inside = Path(path.lstrip("/"))
        for top in tops:
            yield from (top / part for part in (inside, *inside.parents) if (top / part).is_dir())


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""
