"""The peak of a process's memory."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_megabytes() -> float:
    """The largest resident size this process has had, in units of 10⁶ bytes.

    Linux hands the figure of `getrusage` on from parent to child, so that a small child
    of a large parent looks large; the kernel's own figure for the address space does
    not have this flaw, and is read where there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource  # noqa: PLC0415  not on every platform

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
