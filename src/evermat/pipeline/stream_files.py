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

from pyarrow.fs import FileSelector, FileType

from evermat.pipeline.files import file_system
from evermat.pipeline.stream import StreamError
from evermat.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from threading import Event

    from pyarrow.fs import FileInfo, FileSystem

    from evermat.pipeline.stream import Batches

MOST_FILES = "maxFilesPerTrigger"
_FORMATS = ("json", "csv")


def follow_files(
    worker: Batches, checkpoint: str, seconds: float | None, stop: Event | None
) -> None:
    """Maintain the events of a folder, batch by batch."""
    folder, log = _opened(worker, checkpoint)
    number = 0
    while stop is None or not stop.is_set():
        files = log.batch(number, folder)
        if files:
            if worker.is_done(number):
                worker.skip()
            else:
                worker.maintain(number, _lines(folder, files), worker.source.format)
            number += 1
        elif seconds is None:
            return
        elif stop is None:
            time.sleep(seconds)
        else:
            stop.wait(seconds)


def _opened(worker: Batches, checkpoint: str) -> tuple[str, _Log]:
    """The folder of events, and what is known about its batches."""
    source = worker.source
    if source.format not in _FORMATS or source.path is None:
        raise StreamError(
            f"a stream of `{source.format}` needs Spark",
            help="use a folder of json or csv files, or the Spark engine",
        )
    folder = source.path.rstrip("/")
    system, path = file_system(folder)
    if system.get_file_info(path).type is not FileType.Directory:
        raise StreamError(
            f"there is no folder of events at `{folder}`",
            help="check `path` of the stream",
        )
    log = _Log(checkpoint, _most_files(source.options.get(MOST_FILES)))
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

    def __init__(self, checkpoint: str, most: int | None) -> None:
        self._is_local = "://" not in checkpoint
        self._system, path = file_system(checkpoint)
        self._folder = f"{path.rstrip('/')}/batches"
        self._system.create_dir(self._folder, recursive=True)
        self._most = most
        self._batches: list[list[str]] = []
        there = {info.base_name for info in _listed(self._system, self._folder)}
        while (name := f"{self.count()}.json") in there:
            with self._system.open_input_file(f"{self._folder}/{name}") as file:
                self._batches.append(json.loads(file.read()))
        self._seen = {name for batch in self._batches for name in batch}

    def count(self) -> int:
        """How many batches there are."""
        return len(self._batches)

    def batch(self, number: int, folder: str) -> list[str]:
        """The files of a batch; a new batch has those that are new."""
        if number < self.count():
            return self._batches[number]
        files = [
            (info.mtime_ns, info.base_name)
            for info in _listed(*file_system(folder))
            if info.base_name not in self._seen and _is_event_file(info)
        ]
        names = [name for _, name in sorted(files)][: self._most]
        if names:
            self._write(number, names)
            self._batches.append(names)
            self._seen.update(names)
        return names

    def _write(self, number: int, names: list[str]) -> None:
        target, text = f"{self._folder}/{number}.json", json.dumps(names)
        if not self._is_local:
            # Stores of objects show nothing before the end.
            with self._system.open_output_stream(target) as sink:
                sink.write(text.encode())
            return
        draft = Path(target).with_suffix(".draft")
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)


def _listed(system: FileSystem, folder: str) -> list[FileInfo]:
    found: list[FileInfo] = system.get_file_info(FileSelector(folder))
    return found


def _is_event_file(info: FileInfo) -> bool:
    # As for Spark: names that begin so are drafts of somebody else.
    return info.type is FileType.File and info.base_name[0] not in "._"


def _lines(folder: str, names: list[str]) -> Iterator[bytes]:
    system, path = file_system(folder)
    for name in names:
        try:
            with system.open_input_stream(f"{path}/{name}") as stream:
                lines = stream.read().splitlines()
        except OSError as error:
            raise StreamError(
                f"cannot read the events in `{name}`: {error}"
            ) from without_secrets(error)
        yield from (line for line in lines if line.strip())
