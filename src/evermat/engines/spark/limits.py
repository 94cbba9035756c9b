"""How many facts are kept together: settings of the session, or of the environment.

All are numbers of facts, or of constants. A session says `spark.evermat.gathered`,
`spark.evermat.small`, `spark.evermat.constants` and `spark.evermat.hashed`; where it
does not, EVERMAT_SPARK_GATHERED, EVERMAT_SPARK_SMALL, EVERMAT_SPARK_CONSTANTS and
EVERMAT_SPARK_HASHED are taken, and then what is written here, or follows from the
memory of executors.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.engines.spark.joins import room_for_tables
from evermat.errors import EvermatError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GATHERED = 5_000_000
"""Facts up to which all of them are kept by the embedded engine on the driver.

A fact takes some 100 to 300 bytes there, with both counters, indexes and texts.
"""
SMALL = 200_000
"""Facts up to which a set stays on the driver, once the others are spread."""
CONSTANTS = 1_000_000
"""Constants up to which the dictionary of spread facts stays on the driver.

A constant takes some 50 to 100 bytes there; small integers take nothing.
"""


class SparkLimitError(EvermatError, ValueError):
    """A limit that is no number of facts or constants."""

    code = "EM607"


@dataclass(frozen=True, slots=True)
class Limits:
    """Numbers of facts and of constants.

    Attributes:
        gathered: up to so many, all facts are on the driver; 0 to spread them always.
        small: up to so many, a set of spread facts is on the driver.
        constants: up to so many, the dictionary of spread facts is on the driver.
        hashed: up to so many rows of a side, a join makes a table by hash of them.
    """

    gathered: int
    small: int
    constants: int
    hashed: int


def limits_of(
    session: SparkSession, *, gathered: int | None = None, small: int | None = None
) -> Limits:
    """The limits of a session, unless they are given."""
    return Limits(
        _limit(session, "gathered", GATHERED, gathered),
        _limit(session, "small", SMALL, small),
        _limit(session, "constants", CONSTANTS),
        _limit(session, "hashed", room_for_tables(session)),
    )


def _limit(
    session: SparkSession, name: str, usual: int, given: int | None = None
) -> int:
    setting = f"spark.evermat.{name}"
    text = session.conf.get(setting, None)
    if given is not None:
        setting, text = name, str(given)
    elif text is None:
        setting = f"EVERMAT_SPARK_{name.upper()}"
        text = os.environ.get(setting, str(usual))
    if not text.isdecimal():
        raise SparkLimitError(
            f"`{setting}` is `{text}`", help="it is a number, 0 or more"
        )
    return int(text)
