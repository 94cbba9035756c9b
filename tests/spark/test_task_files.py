"""Files that tasks write and read, without Spark: its tasks are plain functions."""

from __future__ import annotations

import gc
import json
import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow.fs import LocalFileSystem

from evermat.engines.spark import task_files, tasks
from evermat.engines.spark.task_files import (
    Piece,
    pieces,
    read_task,
    shared_out,
    write_task,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


def batches(count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, 5):
        numbers = range(start, min(start + 5, count))
        yield pa.RecordBatch.from_pydict({"id": list(numbers)})


def share(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"id": [number]})


def test_every_attempt_has_a_file_of_its_own(tmp_path: Path) -> None:
    write = partial(write_task, LocalFileSystem, str(tmp_path), ())
    names = [row["path"] for _ in range(2) for row in _rows(write(batches(12)))]
    assert sorted(names) == sorted(map(str, tmp_path.iterdir()))
    assert len(set(names)) == 2
    assert _rows(write(batches(0))) == []


@pytest.mark.parametrize("group", [5, 100])
@pytest.mark.parametrize("least", [1, 3])
def test_every_row_is_read_once(
    tmp_path: Path, group: int, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_files, "ROWS_IN_A_GROUP", group)
    found = []
    for count in (1, 23, 12):
        (row,) = _rows(write_task(LocalFileSystem, str(tmp_path), (), batches(count)))
        assert row["size"] == LocalFileSystem().get_file_info(row["path"]).size
        found.append((row["path"], row["rows"], row["digest"]))
    shares = shared_out(pieces(found), least)
    assert len(shares) >= least
    columns = pa.schema([("id", pa.int64()), ("later", pa.string())])
    read = partial(read_task, LocalFileSystem, shares, columns)
    table = pa.Table.from_batches(
        [each for at in range(len(shares)) for each in read([share(at)])], columns
    )
    assert sorted(table["id"].to_pylist()) == sorted([*range(23), *range(12), 0])
    assert table["later"].null_count == 36


def test_rows_are_counted_while_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_files, "ROWS_IN_A_GROUP", 2)
    rows = {"name": ["a", "b", "a", "a", "b"], "sign": [1, 1, -1, 1, 1], "x": [1] * 5}
    found = write_task(
        LocalFileSystem,
        str(tmp_path),
        ("name", "sign"),
        [pa.RecordBatch.from_pydict(rows)] * 3,
    )
    (row,) = _rows(found)
    assert sorted(json.loads(row["counts"])) == [["a", -1, 3], ["a", 1, 6], ["b", 1, 6]]


def test_large_files_are_cut_and_small_ones_put_together() -> None:
    rows = task_files.ROWS_IN_A_GROUP
    cut = pieces([("large", 3 * rows, "d"), ("small", 1, None), ("tiny", 0, None)])
    assert cut[:3] == [Piece("large", number, 3, rows, "d") for number in range(3)]
    shares = shared_out(cut, 2)
    assert [[piece.path for piece in each] for each in shares] == [
        ["large", "small"],
        ["large", "tiny"],
        ["large"],
    ]
    assert shared_out([], 2) == []


def test_tasks_see_the_variables_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_given", set())
    monkeypatch.setattr(gc, "freeze", list)
    monkeypatch.setenv("AWS_REGION", "of the worker")
    for name in ("AWS_A", "AWS_B"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    def seen(variables: dict[str, str]) -> list[str | None]:
        def task(_: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            found = [os.environ.get(name) for name in ("AWS_REGION", "AWS_A", "AWS_B")]
            yield pa.RecordBatch.from_pydict({"found": found})

        (batch,) = tasks._run(variables, task, [])  # noqa: SLF001  what workers call
        found: list[str | None] = batch["found"].to_pylist()
        return found

    given = {"AWS_REGION": "of the driver", "AWS_A": "1"}
    assert seen(given) == ["of the worker", "1", None]
    assert seen({"AWS_A": "2", "AWS_B": "3"}) == ["of the worker", "2", "3"]
    assert seen({}) == ["of the worker", None, None]


def test_only_what_is_loaded_at_first_is_kept_from_the_search_for_garbage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[int] = []
    monkeypatch.setattr(tasks, "_tasks", iter(range(9)))
    for number in range(4):
        monkeypatch.setattr(gc, "freeze", partial(frozen.append, number))
        tasks._run({}, iter, [])  # noqa: SLF001  what workers call
    assert frozen == [0, 1]


def _rows(found: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    return [row for batch in found for row in batch.to_pylist()]
