"""Checking a whole state: every version, every file, without opening it for use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evermat.lake.errors import StateError, no_state, require_folder, step
from evermat.lake.integrity import problems_of_log, verify_file
from evermat.lake.log import FOLDER, Log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
        versions: the versions that can be read.
        oldest: the oldest version that was not vacuumed.
        latest: the latest version.
        files: how many data files were read.
        size: how many bytes they have.
        without_digest: how many of them an older Evermat wrote, so that little could be
            verified.
        problems: what is wrong.
        left_behind: the same for files that only versions need which were given up when
            the state went back to an older one; they stay until they are vacuumed.
    """

    place: str
    versions: tuple[int, ...]
    oldest: int
    latest: int
    files: int
    size: int
    without_digest: int
    problems: tuple[Problem, ...]
    left_behind: tuple[Problem, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


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
    require_folder(place)
    log = Log(str(place), dict(storage_options or {}))
    with step(f"verify the state at `{place}`"):
        if log.latest() < 0:
            raise no_state(place)
        return _Verifier(log).run()


class _Verifier:
    """Looks at one version after the other, and at each file once."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._latest = log.latest()
        self._files: dict[str, DataFile] = {}
        self._damage: dict[str, StateError | None] = {}
        self._reasons: dict[str, str] = {}
        self._spoiled: dict[str, list[int]] = {}

    def run(self) -> Verification:
        log, latest = self._log, self._latest
        for problem in problems_of_log(log):
            self._add(problem, problem.file)
        oldest, given_up = log.oldest(), log.given_up()
        readable = [
            version
            for version in range(oldest, latest + 1)
            if self._is_readable(version, is_given_up=version in given_up)
        ]
        problems: list[Problem] = []
        left_behind: list[Problem] = []
        for file, reason in self._reasons.items():
            spoiled = tuple(self._spoiled[file])
            matters = not spoiled or not given_up.issuperset(spoiled)
            (problems if matters else left_behind).append(
                Problem(file, reason, spoiled)
            )
        return Verification(
            place=log.place,
            versions=tuple(readable),
            oldest=oldest,
            latest=latest,
            files=len(self._files),
            size=sum(file.size for file in self._files.values()),
            without_digest=sum(each.digest is None for each in self._files.values()),
            problems=tuple(problems),
            left_behind=tuple(left_behind),
        )

    def _is_readable(self, version: int, *, is_given_up: bool) -> bool:
        try:
            contents = self._log.contents(version)
        except StateError as error:
            # What others wrote in a version that was given up is no problem any more.
            if not is_given_up:
                self._add(error, getattr(error, "file", FOLDER), version)
            return False
        is_readable = True
        for file in contents.files.values():
            problem = self._problem(file)
            if problem is None:
                continue
            is_readable = False
            # Older states keep no record of what was vacuumed.
            is_vacuumed = isinstance(problem.__cause__, FileNotFoundError)
            if file.digest or not is_vacuumed or version == self._latest:
                self._add(problem, file.path, version)
        return is_readable

    def _problem(self, file: DataFile) -> StateError | None:
        """What is wrong with a file, of which versions have many in common."""
        if file.path not in self._files:
            self._files[file.path] = file
            self._damage[file.path] = None
            try:
                with step(f"read `{file.path}` of the state at `{self._log.place}`"):
                    verify_file(self._log, file)
            except StateError as error:
                self._damage[file.path] = error
        return self._damage[file.path]

    def _add(self, error: StateError, file: str, version: int | None = None) -> None:
        self._reasons.setdefault(file, error.reason)
        spoiled = self._spoiled.setdefault(file, [])
        if version is not None:
            spoiled.append(version)
