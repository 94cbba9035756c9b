"""A plain loop over files of events, for engines that need no cluster.

Which files make up a batch is written down before the batch is read, as Structured
Streaming does: after a crash the same batch has the same files.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.pipeline.stream import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

    from evermat.pipeline.stream import Batches

MOST_FILES = "maxFilesPerTrigger"
_FORMATS = ("json", "csv")


def follow_files(
    worker: Batches, checkpoint: str, seconds: float | None, stop: Event | None
) -> None:
    """Maintain the events of a folder, batch by batch."""
    folder, log = _opened(worker, checkpoint)
    number = 0
    while True:
        files = log.batch(number, folder)
        if files:
            if worker.is_done(number):
                worker.skip()
            else:
                worker.maintain(number, _lines(folder, files), worker.source.format)
            number += 1
        elif seconds is None or (stop is not None and stop.wait(seconds)):
            return
        elif stop is None:
            time.sleep(seconds)


def _opened(worker: Batches, checkpoint: str) -> tuple[Path, _Log]:
    """The folder of events, and what is known about its batches."""
    source = worker.source
    if source.format not in _FORMATS or source.path is None:
        raise StreamError(
            f"a stream of `{source.format}` needs Spark",
            help="use a folder of json or csv files, or the Spark engine",
        )
    folder = Path(source.path)
    if not folder.is_dir():
        raise StreamError(f"there is no folder of events at `{folder}`")
    log = _Log(Path(checkpoint), _most_files(source.options.get(MOST_FILES)))
    last = worker.kb.last_batch(worker.app_id)
    if last is not None and log.count() <= last:
        raise StreamError(
            f"the state knows batch {last} of `{worker.app_id}`, and the checkpoint at "
            f"`{checkpoint}` does not",
            help="use the checkpoint that belongs to the state, or another app_id",
        )
    return folder, log


def _most_files(option: str | None) -> int | None:
    if option is None:
        return None
    if not option.isdigit() or int(option) < 1:
        raise StreamError(f"`{MOST_FILES}` is {option!r}, not a number of files")
    return int(option)


class _Log:
    """The files of each batch, one small file for each in the checkpoint."""

    def __init__(self, checkpoint: Path, most: int | None) -> None:
        self._folder = checkpoint / "batches"
        self._folder.mkdir(parents=True, exist_ok=True)
        self._most = most
        self._batches: list[list[str]] = []
        while (file := self._folder / f"{self.count()}.json").exists():
            self._batches.append(json.loads(file.read_text(encoding="utf-8")))
        self._seen = {name for batch in self._batches for name in batch}

    def count(self) -> int:
        """How many batches there are."""
        return len(self._batches)

    def batch(self, number: int, folder: Path) -> list[str]:
        """The files of a batch; a new batch has those that are new."""
        if number < self.count():
            return self._batches[number]
        files = [
            (file.stat().st_mtime_ns, file.name)
            for file in folder.iterdir()
            if file.name not in self._seen and _is_event_file(file)
        ]
        names = [name for _, name in sorted(files)][: self._most]
        if names:
            self._write(number, names)
            self._batches.append(names)
            self._seen.update(names)
        return names

    def _write(self, number: int, names: list[str]) -> None:
        target = self._folder / f"{number}.json"
        draft = target.with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as file:
            json.dump(names, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)


def _is_event_file(file: Path) -> bool:
    # As for Spark: names that begin so are drafts of somebody else.
    return file.is_file() and file.name[0] not in "._"


def _lines(folder: Path, names: list[str]) -> Iterator[str]:
    for name in names:
        try:
            with (folder / name).open(encoding="utf-8", errors="replace") as file:
                for line in file:
                    if line.strip():
                        yield line.rstrip("\r\n")
        except OSError as error:
            raise StreamError(f"cannot read the events in `{name}`: {error}") from error
