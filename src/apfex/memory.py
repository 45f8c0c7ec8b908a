"""How much memory there is, asked before much of it is taken."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__: list[str] = []

_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)
"""What a container may use, and uses, of either kind; ``memory.stat`` lies beside."""
_STATUS, _MACHINE = Path("/proc/self/statm"), Path("/proc/meminfo")
_SMALL = 2**26
"""Bytes that are there in any case."""
_UNKNOWN = 4 * 2**30
"""Bytes, where no system tells."""
_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def usable_memory() -> int:
    """Bytes that this process may use, by the machine, its container and its own limit."""
    found = [_own_limit()]
    with suppress(AttributeError, ValueError, OSError):  # not on every system
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    found += [_number(most) for most, _ in _CGROUPS]
    return min((one for one in found if one is not None), default=_UNKNOWN)


def free_memory() -> int:
    """Bytes that this process may still take."""
    found = [usable_memory()]
    own = _own_limit()
    with suppress(OSError, ValueError, AttributeError):
        taken = int(_STATUS.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        found += [] if own is None else [own - taken]
    with suppress(OSError, ValueError, IndexError):
        line = _MACHINE.read_text().split("MemAvailable:")[1]
        found.append(1024 * int(line.split()[0]))
    for most, used in _CGROUPS:
        limit, taken = _number(most), _number(used)
        if limit is not None and taken is not None:
            found.append(limit - max(0, taken - _given_back(used)))
    return max(0, min(found))


def is_too_much(n_bytes: float) -> bool:
    """Whether so many bytes are more than this process may still take.

    Examples
    --------
    >>> is_too_much(1_000), is_too_much(10**18)
    (False, True)
    """
    return n_bytes > _SMALL and n_bytes > free_memory()


def in_bytes(n_bytes: float) -> str:
    """A size as people read it.

    Examples
    --------
    >>> in_bytes(1_536), in_bytes(60 * 10**9)
    ('1.5 kB', '60.0 GB')
    """
    size = float(n_bytes)
    for unit in _UNITS[:-1]:
        if size < 1_000:
            return f"{size:,.1f} {unit}" if unit != "bytes" else f"{size:.0f} bytes"
        size /= 1_000
    return f"{size:,.1f} {_UNITS[-1]}"


def _own_limit() -> int | None:
    with suppress(ImportError):  # not on every system
        import resource

        own = resource.getrlimit(resource.RLIMIT_AS)[0]
        return None if own == resource.RLIM_INFINITY else own
    return None


def _given_back(used: str) -> int:
    """Of what a container uses: files that were read, whose room the system takes when asked."""
    with suppress(OSError, ValueError):
        lines = Path(used).with_name("memory.stat").read_text().splitlines()
        stat = dict(line.split(maxsplit=1) for line in lines)
        # with all containers inside, which only the older kind tells apart
        return int(stat.get("total_inactive_file", stat.get("inactive_file", 0)))
    return 0


def _number(file: str) -> int | None:
    with suppress(OSError, ValueError):
        return int(Path(file).read_text())
    return None
