"""What the state of a pipeline holds, without running anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evermat.pipeline.report import OK, read_reports

if TYPE_CHECKING:
    from evermat.pipeline.config import Config

_LOOKED_AT = 1000


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a pipeline.

    Attributes:
        version: the newest version, None if there is none.
        versions: all versions that runs have made.
        predicates: facts and given facts of each, in the newest version.
    """

    version: int | None = None
    versions: list[int] = field(default_factory=list)
    predicates: dict[str, dict[str, int]] = field(default_factory=dict)


def read_status(config: Config) -> Status:
    """What the reports of the runs say of the state."""
    good = [
        report
        for report in read_reports(config.reports, _LOOKED_AT)
        if report["status"] == OK and report["version"] is not None
    ]
    if not good:
        return Status()
    return Status(
        version=good[0]["version"],
        versions=[report["version"] for report in good],
        predicates=good[0]["predicates"],
    )
