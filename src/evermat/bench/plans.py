"""What is measured, how often and for how long, and how progress is told."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from evermat.bench.processes import Status, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.bench.processes import Measured, Record

GENERATION_LIMIT = 600.0
"""Seconds that making a problem may take; none here needs a tenth of it."""

WARM_SCALE = 0.002
"""The scale of the tiny problem that a measuring process warms up on."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a suite is run.

    Attributes:
        scale: multiplies the size of every workload.
        repeat: how often each measurement is taken; tables show the median,
            those of `equality` the least.
        peers: whether clingo and DuckDB are asked too.
        time_limit: seconds after which a measuring process is stopped.
        only: the workloads to run, all if empty.
    """

    scale: float = 1.0
    repeat: int = 3
    peers: bool = True
    time_limit: float = 300.0
    only: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        """Whether a workload is to be run."""
        return not self.only or name in self.only


class GenerationError(RuntimeError):
    """A problem could not be generated."""


@contextmanager
def prepared(workload: str, scale: float) -> Iterator[dict[str, str]]:
    """The folders of a generated problem and of its tiny sibling, for a while."""
    with TemporaryDirectory(prefix="evermat-bench-") as root:
        folder, warm = str(Path(root, "problem")), str(Path(root, "warm"))
        scales = {folder: scale, warm: min(scale, WARM_SCALE)}
        task = {"task": "generate", "workload": workload, "folders": scales}
        made = measure(task, time_limit=GENERATION_LIMIT)
        if made.status is not Status.DONE:
            raise GenerationError(f"{workload}: {made.message or made.status}")
        yield {"folder": folder, "warm": warm}


def say(text: str) -> None:
    """Tell that a measurement begins or has ended."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def median(records: list[Record], field: str) -> float | None:
    """The median of a field, if it was measured at all."""
    values = sorted(record[field] for record in records if field in record)
    if not values:
        return None
    middle = len(values) // 2
    if len(values) % 2:
        return float(values[middle])
    return float(values[middle - 1] + values[middle]) / 2


def ending(measured: Measured, time_limit: float) -> str:
    """What a table says where a measurement has no figure."""
    match measured.status:
        case Status.TIME_LIMIT:
            return f"> {time_limit:.0f} s"
        case Status.REFUSED:
            return "n/a"
        case Status.FAILED:
            return "failed"
        case Status.DONE:
            return "–"
