"""Limits of the data on the driver: settings of the session, or of the environment.

All are numbers of facts, or of constants. A session has `spark.evermat.driver_facts`,
`spark.evermat.small`, `spark.evermat.constants` and `spark.evermat.hashed`; if they are
not set, EVERMAT_SPARK_DRIVER_FACTS, EVERMAT_SPARK_SMALL, EVERMAT_SPARK_CONSTANTS and
EVERMAT_SPARK_HASHED are used, and then the defaults below, or those that follow from
the memory of executors.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.engines.spark.joins import bytes_of, room_for_tables
from evermat.engines.spark.session import SessionToCome, require_classic
from evermat.errors import EvermatError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

BYTES_PER_FACT = 400
"""Memory of a fact on the driver, with counters, indexes and texts."""
SHARE = 0.6
"""Share of the free memory that facts may take."""
SMALL = 200_000
"""Facts up to which a set stays on the driver, once the others are distributed."""
CONSTANTS = 1_000_000
"""Constants up to which the dictionary of distributed facts stays on the driver.

A constant takes some 50 to 100 bytes there; small integers take nothing.
"""
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)


class SparkLimitError(EvermatError, ValueError):
    """A limit that is no number of facts or constants."""

    code = "EM607"


class OutgrownError(Exception):
    """An update does not fit; a signal between parts of the engine."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of facts and of constants.

    Attributes:
        driver_facts: up to so many, all facts are on the driver; 0 to distribute them
            from the first one on.
        small: up to so many, a set of distributed facts is on the driver.
        constants: up to so many, the dictionary of distributed facts is on the driver.
        hashed: up to so many rows of a side, a join makes a table by hash of them; it
            depends on the memory of executors.
    """

    driver_facts: int
    small: int
    constants: int
    hashed: Callable[[SparkSession], int]


def limits_of(
    session: SparkSession | SessionToCome,
    *,
    driver_facts: int | None = None,
    small: int | None = None,
) -> Limits:
    """The limits of a session, unless they are given.

    Raises:
        SparkSetupError: it is a session of Spark Connect.
    """
    if not isinstance(session, SessionToCome):
        require_classic(session)

    def setting(name: str, usual: str | None = None) -> str | None:
        if isinstance(session, SessionToCome):
            return session.settings.get(name, usual)
        return session.conf.get(name, usual)

    def limit(name: str, usual: Callable[[], int], given: int | None = None) -> int:
        if given is not None:
            return _number(name, str(given))
        return limit_of(name, setting(f"spark.evermat.{name}"), usual)

    heap = setting("spark.driver.memory") or "1g"
    return Limits(
        limit("driver_facts", lambda: facts_in_memory(heap), driver_facts),
        limit("small", lambda: SMALL, small),
        limit("constants", lambda: CONSTANTS),
        lambda started: limit("hashed", lambda: room_for_tables(started)),
    )


def limit_of(name: str, setting: str | None, usual: Callable[[], int]) -> int:
    """Return a limit: the session's, else that of the environment, else the default.

    Raises:
        SparkLimitError: the setting is not a number.
    """
    if setting is not None:
        return _number(f"spark.evermat.{name}", setting)
    variable = f"EVERMAT_SPARK_{name.upper()}"
    text = os.environ.get(variable)
    return usual() if text is None else _number(variable, text)


def _number(setting: str, text: str) -> int:
    if not text.isdecimal():
        raise SparkLimitError(
            f"`{setting}` is `{text}`", help="it is a number, 0 or more"
        )
    return int(text)


def facts_in_memory(heap: str = "0") -> int:
    """Return the number of facts that the driver has memory for.

    Args:
        heap: memory that its Java process may still take, as Spark's settings have it.
    """
    free = free_memory() - bytes_of(heap)
    return max(0, int(free * SHARE) // BYTES_PER_FACT)


def free_memory() -> int:
    """Return the memory that this process can still get from machine and container."""
    free = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    status = _text("/proc/meminfo")
    if found := re.search(r"^MemAvailable:\s+(\d+) kB", status, re.MULTILINE):
        free.append(int(found[1]) << 10)
    for most, used in _CONTROL_GROUPS:
        limit, usage = _text(most).strip(), _text(used).strip()
        if limit.isdecimal() and usage.isdecimal():
            free.append(int(limit) - int(usage))
    return max(0, min(free))


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
