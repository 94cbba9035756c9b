"""The versions of a state: what made them, and letting go of old ones."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evermat.lake.errors import StateSettingsError, no_state, step
from evermat.lake.table import StateTable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a state.

    Attributes:
        time: when it was committed.
        added, removed: how many facts of each relation came and left.
        batch: the application and the number of the batch that was recorded with it.
        changes: the files that say what changed.
        is_update: whether an update made it; false for what only tidies up.
    """

    number: int
    time: datetime
    added: Mapping[str, int] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)
    batch: tuple[str, int] | None = None
    changes: tuple[str, ...] = ()
    is_update: bool = True


def history(
    place: str | Path, *, storage_options: Mapping[str, str] | None = None
) -> list[Version]:
    """The versions of a state, the oldest first."""
    table = existing(place, storage_options)
    with step(f"read the log of the state at `{place}`"):
        entries = table.delta.history()
    return sorted((_version(each) for each in entries), key=lambda each: each.number)


def _version(entry: Mapping[str, Any]) -> Version:
    info = json.loads(entry.get("evermat", "{}"))
    batch = info.get("batch")
    return Version(
        number=entry["version"],
        time=datetime.fromtimestamp(entry["timestamp"] / 1000, UTC),
        added=info.get("added", {}),
        removed=info.get("removed", {}),
        batch=None if batch is None else (batch[0], batch[1]),
        changes=tuple(info.get("changes", ())),
        is_update="evermat" in entry,
    )


def vacuum(
    place: str | Path,
    *,
    keep: int = 10,
    hours: int = 0,
    storage_options: Mapping[str, str] | None = None,
) -> list[str]:
    """Remove the files that only old versions need, and those of failed updates.

    Args:
        place: where the state is.
        keep: how many versions, the latest ones, stay readable.
        hours: files that were written or left later than this stay as well. Updates
            that are under way while this runs need at least as many hours as they
            take: nothing is known about their files yet.
        storage_options: for the storage, as `deltalake` takes them.

    Returns:
        The files that were removed, relative to the state.
    """
    if keep < 1:
        raise StateSettingsError(
            f"cannot keep {keep} versions", help="keep at least the latest one"
        )
    table = existing(place, storage_options)
    latest = table.version
    with step(f"vacuum the state at `{place}`"):
        removed: list[str] = table.delta.vacuum(
            retention_hours=hours,
            dry_run=False,
            enforce_retention_duration=False,
            full=True,
            keep_versions=list(range(max(latest - keep + 1, 0), latest + 1)),
        )
    return removed


def existing(
    place: str | Path,
    options: Mapping[str, str] | None = None,
    version: int | None = None,
) -> StateTable:
    """The table of a state that must be there."""
    table = StateTable.open(place, version=version, options=options)
    if table is None:
        raise no_state(place)
    return table
