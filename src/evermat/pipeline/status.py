"""What the state of a pipeline holds, without running anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evermat.pipeline.knowledge import state_versions
from evermat.pipeline.report import OK, read_reports

if TYPE_CHECKING:
    from evermat.pipeline.config import Config

_LOOKED_AT = 100


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a pipeline.

    Attributes:
        version: the newest version, None if there is none.
        versions: all versions there are, the newest first: number, time, and how many
            facts came and left.
        predicates: facts and given facts of each, after the last run that went well.
    """

    version: int | None = None
    versions: list[dict[str, object]] = field(default_factory=list)
    predicates: dict[str, dict[str, int]] = field(default_factory=dict)


def read_status(config: Config) -> Status:
    """What the log of the state and the reports of the runs say."""
    versions = [
        {
            "version": each.number,
            "time": each.time.isoformat(timespec="seconds"),
            "added": sum(each.added.values()),
            "removed": sum(each.removed.values()),
        }
        for each in state_versions(config)[::-1]
        if each.is_update
    ]
    reports = read_reports(config.reports, _LOOKED_AT)
    last = next((report for report in reports if report["status"] == OK), None)
    newest = versions[0]["version"] if versions else None
    return Status(
        version=newest if isinstance(newest, int) else None,
        versions=versions,
        predicates={} if last is None else last["predicates"],
    )
