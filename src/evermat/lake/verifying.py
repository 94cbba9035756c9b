"""Checking a whole state: every version, every file, without opening it for use."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.lake.errors import StateError, no_state, step
from evermat.lake.integrity import problems_of_log, verify_file
from evermat.lake.log import Log

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.lake.data_files import DataFile


@dataclass(frozen=True, slots=True)
class Problem:
    """A file of a state that is damaged, missing, or was written by others.

    Attributes:
        versions: the versions that cannot be read because of it; none for files from
            which no version is read.
    """

    file: str
    reason: str
    versions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """What was found when a state was verified.

    Attributes:
        versions: the versions that can be read, without those that were given up when
            the state went back to an older one.
        oldest: the oldest version that was not vacuumed.
        latest: the latest version.
        files: how many data files were read.
        size: how many bytes they have.
        without_digest: how many of them an older Evermat wrote, so that little could be
            verified.
        problems: what is wrong.
    """

    place: str
    versions: tuple[int, ...]
    oldest: int
    latest: int
    files: int
    size: int
    without_digest: int
    problems: tuple[Problem, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(slots=True)
class _Found:
    reasons: dict[str, str] = field(default_factory=dict)
    versions: dict[str, list[int]] = field(default_factory=dict)

    def add(self, error: StateError, file: str, version: int | None = None) -> None:
        self.reasons.setdefault(file, error.message)
        spoiled = self.versions.setdefault(file, [])
        if version is not None and version not in spoiled:
            spoiled.append(version)


def verify(
    place: str | Path, *, storage_options: Mapping[str, str] | None = None
) -> Verification:
    """Check everything: all versions that were not vacuumed, their files, the log.

    Args:
        place: where the state is.
        storage_options: for the storage, as `deltalake` takes them.

    Raises:
        StateError: there is no state, or the place cannot be read.
    """
    log = Log(str(place), dict(storage_options or {}))
    with step(f"verify the state at `{place}`"):
        if Path(str(place)).is_file() or log.latest() < 0:
            raise no_state(place)
        found = _Found()
        for problem in problems_of_log(log):
            found.add(problem, problem.file)
        return _verified(log, found)


def _verified(log: Log, found: _Found) -> Verification:
    oldest, latest = log.oldest(), log.latest()
    files: dict[str, DataFile] = {}
    damage: dict[str, StateError | None] = {}
    readable: list[int] = []
    given_up = log.given_up()
    for version in range(oldest, latest + 1):
        if version in given_up:
            continue
        try:
            contents = log.contents(version)
        except StateError as error:
            found.add(error, getattr(error, "file", log.place), version)
            continue
        is_whole = True
        for file in contents.files.values():
            if file.path not in files:
                files[file.path] = file
                damage[file.path] = _damage(log, file)
            problem = damage[file.path]
            if problem is not None:
                is_whole = False
                found.add(problem, file.path, version)
        if is_whole:
            readable.append(version)
    return Verification(
        place=log.place,
        versions=tuple(readable),
        oldest=oldest,
        latest=latest,
        files=len(files),
        size=sum(file.size for file in files.values()),
        without_digest=sum(file.digest is None for file in files.values()),
        problems=tuple(
            Problem(file, reason, tuple(found.versions[file]))
            for file, reason in found.reasons.items()
        ),
    )


def _damage(log: Log, file: DataFile) -> StateError | None:
    try:
        with step(f"read `{file.path}` of the state at `{log.place}`"):
            verify_file(log, file)
    except StateError as error:
        return error
    return None
