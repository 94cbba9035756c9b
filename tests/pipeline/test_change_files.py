"""Change files: applied once, in the order of their time."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat import lake
from evermat.columns import constants
from evermat.lake.state import open_state
from evermat.pipeline import Pipeline
from evermat.pipeline.change_files import net_changes
from evermat.pipeline.errors import RejectedRowsError
from evermat.values import constant
from pipelines import OUTPUT, PROGRAM, configured, rows, run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from evermat.pipeline import Config
    from evermat.pipeline.change_files import Kind

STATE = '[state]\npath = "state"\n'
SOURCE = """
[[source]]
predicate = "edge"
path = "edge.csv"
[source.update]
insert = "new"
delete = "gone"
"""


def write(folder: Path, name: str, *pairs: str, day: int = 0) -> None:
    """A file of edges, written on a day."""
    place = folder / name
    place.parent.mkdir(exist_ok=True)
    lines = ["x,y", *(f"{pair[0]},{pair[1]}" for pair in pairs)]
    place.write_text("\n".join(lines) + "\n", encoding="utf-8")
    time = 1_700_000_000 + 86_400 * day
    os.utime(place, (time, time))


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """A pipeline that was run with one edge, and folders for changes."""
    write(tmp_path, "edge.csv", "ab")
    (tmp_path / "new").mkdir()
    (tmp_path / "gone").mkdir()
    config = configured(tmp_path, PROGRAM, STATE, SOURCE, OUTPUT)
    run(config)
    return config


def reached(folder: Path) -> list[str]:
    return ["".join(map(str, row)) for row in rows(folder / "out/reach")]


def test_rows_that_were_deleted_since_stay_deleted(
    tmp_path: Path, config: Config
) -> None:
    write(tmp_path, "new/monday.csv", "bc", day=1)
    Pipeline(config).update()
    assert reached(tmp_path) == ["ab", "ac", "bc"]
    write(tmp_path, "gone/tuesday.csv", "bc", day=2)
    Pipeline(config).update()
    assert reached(tmp_path) == ["ab"]
    finished = Pipeline(config).update()
    assert finished.report.changes == {}
    assert finished.report.sources == []


def test_files_that_wait_are_applied_in_the_order_of_their_time(
    tmp_path: Path, config: Config
) -> None:
    write(tmp_path, "new/monday.csv", "bc", "bd", day=1)
    write(tmp_path, "gone/tuesday.csv", "bc", "ab", day=2)
    write(tmp_path, "new/wednesday.csv", "ab", day=3)
    finished = Pipeline(config).update()
    assert reached(tmp_path) == ["ab", "ad", "bd"]
    kinds = [each["change"] for each in finished.report.sources]
    assert kinds == ["insert", "delete", "insert"]


def test_of_files_of_one_second_deletions_come_first(
    tmp_path: Path, config: Config
) -> None:
    write(tmp_path, "new/a.csv", "bc", day=1)
    write(tmp_path, "gone/b.csv", "bc", "ab", day=1)
    Pipeline(config).update()
    assert reached(tmp_path) == ["bc"]


def test_a_file_counts_by_its_name_and_contents(tmp_path: Path, config: Config) -> None:
    write(tmp_path, "new/1.csv", "bc", day=1)
    Pipeline(config).update()
    write(tmp_path, "gone/2.csv", "bc", day=2)
    Pipeline(config).update()
    write(tmp_path, "new/1.csv", "bc", day=3)  # copied again
    Pipeline(config).update()
    assert reached(tmp_path) == ["ab"]
    write(tmp_path, "new/1.csv", "bd", day=3)  # as long, at the same time or later
    os.utime(tmp_path / "new/1.csv")
    Pipeline(config).update()
    assert reached(tmp_path) == ["ab", "ad", "bd"]
    write(tmp_path, "new/3.csv", "bc", day=4)  # the same rows, said anew
    Pipeline(config).update()
    assert reached(tmp_path) == ["ab", "ac", "ad", "bc", "bd"]


def test_a_run_begins_anew(tmp_path: Path, config: Config) -> None:
    write(tmp_path, "new/1.csv", "bc", day=1)
    Pipeline(config).update()
    run(config)
    assert reached(tmp_path) == ["ab"]
    Pipeline(config).update()
    assert reached(tmp_path) == ["ab", "ac", "bc"]


def test_going_back_takes_files_up_again(tmp_path: Path, config: Config) -> None:
    before = lake.history(str(config.state))[-1].number
    write(tmp_path, "new/1.csv", "bc", day=1)
    Pipeline(config).update()
    lake.restore(str(config.state), to=before)
    Pipeline(config).update()
    assert reached(tmp_path) == ["ab", "ac", "bc"]


def test_a_file_that_fails_is_not_entered(tmp_path: Path, config: Config) -> None:
    write(tmp_path, "new/1.csv", "bc", day=1)
    (tmp_path / "new/2.csv").write_text("x,y\n,b\n")
    with pytest.raises(RejectedRowsError, match="edge-insert"):
        Pipeline(config).update()
    (tmp_path / "new/2.csv").unlink()
    Pipeline(config).update()
    assert reached(tmp_path) == ["ab", "ac", "bc"]


def test_rejected_rows_of_both_sides_are_kept(tmp_path: Path, config: Config) -> None:
    text = config.file.read_text().replace(
        "[source.update]", "max_rejected = 9\n[source.update]"
    )
    config = configured(tmp_path, text)
    for place in ("new/1.csv", "gone/1.csv"):
        (tmp_path / place).write_text("x,y\n,b\n")
    finished = Pipeline(config).update()
    place = f"{config.rejected}/run={finished.report.run}"
    found = pq.read_table(place, partitioning=None).to_pylist()
    assert sorted(row["file"] for row in found) == ["gone/1.csv", "new/1.csv"]


def test_a_file_that_says_nothing_new_is_entered(
    tmp_path: Path, config: Config
) -> None:
    write(tmp_path, "new/1.csv", "ab", day=1)
    Pipeline(config).update()
    assert len(open_state(str(config.state)).ledger("edge")) == 1


def test_ledgers_are_merged(tmp_path: Path, config: Config) -> None:
    for day in range(20):
        write(tmp_path, f"new/{day}.csv", f"b{chr(ord('c') + day)}", day=day)
        Pipeline(config).update()
    state = open_state(str(config.state))
    assert len(state.ledger("edge")) == 20
    assert lake.verify(str(config.state)).is_whole
    assert Pipeline(config).update().report.sources == []


@pytest.mark.parametrize("seed", range(20))
def test_steps_come_to_what_they_are_one_after_the_other(seed: int) -> None:
    choose = random.Random(seed)  # noqa: S311  not for secrets
    values: list[object] = [1, "1", "1:1", ":", "", 2.5]
    known = {(choose.choice(values), choose.choice(values)) for _ in range(8)}
    facts: set[tuple[object, ...]] = set(known)
    steps: list[tuple[Kind, dict[str, pa.Table]]] = []
    for _ in range(choose.randrange(1, 6)):
        kind: Kind = choose.choice(["insert", "delete"])
        columns = [choose.choice([values[:1], values[1:5], values[5:6]]) for _ in "xy"]
        some = [tuple(map(choose.choice, columns)) for _ in range(4)]
        table = pa.table([list(column) for column in zip(*some, strict=True)], "xy")
        steps.append((kind, {"p": table}))
        facts = facts | set(some) if kind == "insert" else facts - set(some)
    insert, delete = map(pairs, net_changes(steps))
    wanted = (typed(set(known)) - delete) | insert
    assert wanted == typed(facts)


def typed(pairs: Iterable[tuple[object, ...]]) -> set[tuple[object, ...]]:
    """Rows as constants."""
    return {tuple(map(constant, pair)) for pair in pairs}


def pairs(tables: dict[str, pa.Table]) -> set[tuple[object, ...]]:
    """The rows of the only predicate, as constants."""
    columns = [constants(each) for table in tables.values() for each in table.columns]
    return set(zip(*columns, strict=True))
