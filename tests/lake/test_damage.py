"""Damage to a state is noticed, named, and limited to the versions that it is in."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

import evermat
from damage_state import damage_states
from evermat import lake
from evermat.engines.spark import stored_facts
from evermat.io import digested_parquet
from evermat.io.digested_parquet import (
    DamagedParquetError,
    DigestedFile,
    DigestedWriter,
    digest_of_file,
)
from evermat.lake import integrity
from evermat.lake.errors import (
    DamagedStateError,
    ForeignCommitError,
    MissingVersionError,
    RestoringError,
    StateConflictError,
    StateError,
)
from evermat.lake.layout import NARROWEST, schema
from evermat.lake.log import LATEST, entry_path, read_entry
from lake.states import EDGES, contents, made, opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def versions(tmp_path: Path) -> dict[int, dict[str, Any]]:
    """What the versions of a state at `tmp_path` hold."""
    kb = made(tmp_path, "reference")
    found = {}
    for edge in EDGES:
        kb.insert("edge", [edge])
        found[kb.version or 0] = contents(kb)
    return found


def flip(file: Path, at: int | None = None) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 1
    file.write_bytes(data)


def newest_facts(place: Path) -> Path:
    """The file that the latest version has added."""
    (name,) = lake.history(place)[-1].changes
    return place / name


def test_no_damage_passes_in_silence(tmp_path: Path) -> None:
    # The same with thousands of trials: `python tests/damage_state.py --count 5000`.
    figures = damage_states(tmp_path, seed=22, count=12, seconds=60)
    assert not figures.wrong, figures.wrong
    assert figures.refused
    assert figures.opened


def test_verify_passes_over_nothing_that_anybody_reads(
    tmp_path: Path, versions: dict[int, dict[str, Any]]
) -> None:
    """Delta adds fields of its own to an entry, which no digest covers."""
    latest = max(versions)
    path = tmp_path / entry_path(latest)
    whole = path.read_bytes()
    passed = [
        damaged
        for at in range(len(whole))
        if reads_well(latest, damaged := with_flipped_bit(whole, 8 * at + at % 8))
    ]
    assert 0 < len(passed) < len(whole) // 4
    before = seen_by_anybody(tmp_path)
    for damaged in passed[:: max(1, len(passed) // 40)]:
        path.write_bytes(damaged)
        assert seen_by_anybody(tmp_path) == before, damaged
        assert contents(opened(tmp_path, "reference")) == versions[latest]


def with_flipped_bit(data: bytes, at: int) -> bytes:
    flipped = bytearray(data)
    flipped[at // 8] ^= 1 << at % 8
    return bytes(flipped)


def reads_well(version: int, entry: bytes) -> bool:
    try:
        return read_entry(version, entry).contents is not None
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def seen_by_anybody(place: Path) -> list[object]:
    """What Evermat tells of a state, and what Delta reads of it."""
    table = DeltaTable(place)
    return [
        lake.history(place),
        list(lake.changes(place, since=0)),
        lake.verify(place),
        table.version(),
        sorted(table.file_uris()),
        table.schema().to_json(),
        sorted(map(str, pa.table(table.get_add_actions(flatten=True)).to_pylist())),
    ]


@pytest.mark.parametrize("at", [3, 40, -5, -60])
def test_a_flipped_bit_of_a_data_file_is_named(
    tmp_path: Path, versions: dict[int, dict[str, Any]], at: int
) -> None:
    file = newest_facts(tmp_path)
    flip(file, at)
    with pytest.raises(DamagedStateError, match=file.name) as caught:
        opened(tmp_path, "reference")
    latest = max(versions)
    assert f"version {latest - 1} is the newest that is whole" in str(caught.value)
    for version in sorted(versions)[:-1]:
        old = opened(tmp_path, "reference", version=version)
        assert contents(old) == versions[version]


@pytest.mark.spark
@pytest.mark.parametrize("is_here", [True, False])
def test_spark_names_a_damaged_file_when_it_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_here: bool
) -> None:
    monkeypatch.setenv("EVERMAT_SPARK_SMALL", "2")
    if not is_here:
        monkeypatch.setattr(stored_facts, "ROWS_HERE", -1)
    kb = made(tmp_path, "reference")
    kb.insert("edge", EDGES)
    version = kb.version
    file = newest_facts(tmp_path)
    flip(file, 40)
    kb = opened(tmp_path, "spark")
    with pytest.raises(DamagedStateError, match=file.name):
        kb.delete("edge", EDGES[:1])
    assert DeltaTable(tmp_path).version() == version
    with pytest.raises(DamagedStateError, match=file.name):
        contents(kb)


def test_a_damaged_entry_spoils_its_own_version_alone(
    tmp_path: Path, versions: dict[int, dict[str, Any]]
) -> None:
    latest = max(versions)
    flip(tmp_path / entry_path(latest - 1))
    with pytest.raises(DamagedStateError, match=entry_path(latest - 1)):
        opened(tmp_path, "reference", version=latest - 1)
    for version in {*versions} - {latest - 1}:
        old = opened(tmp_path, "reference", version=version)
        assert contents(old) == versions[version]


def test_a_damaged_log_is_mended_without_a_loss(
    tmp_path: Path, versions: dict[int, dict[str, Any]]
) -> None:
    latest = max(versions)
    for damaged in (0, 2):
        (tmp_path / entry_path(damaged)).write_text("{}", encoding="utf-8")
    with pytest.raises(DamagedStateError, match="is the newest that is whole"):
        opened(tmp_path, "reference")
    assert lake.restore(tmp_path, to=latest) == latest
    kb = opened(tmp_path, "reference")
    assert contents(kb) == versions[latest]
    assert contents(opened(tmp_path, "reference", version=3)) == versions[3]
    with pytest.raises(StateError, match="was damaged, and replaced"):
        opened(tmp_path, "reference", version=2)
    with pytest.raises(MissingVersionError, match="version 2 is no longer known"):
        list(lake.changes(tmp_path, since=1))
    assert list(lake.changes(tmp_path, since=2))
    kb.insert("edge", [("x", "y")])
    assert lake.verify(tmp_path).is_whole
    assert DeltaTable(tmp_path).version() == latest + 1
    lake.vacuum(tmp_path)
    assert contents(opened(tmp_path, "reference")) == contents(kb)


def test_what_delta_alone_was_told_is_mended_too(
    tmp_path: Path, versions: dict[int, dict[str, Any]]
) -> None:
    latest = max(versions)
    entry = tmp_path / entry_path(0)
    text = entry.read_text(encoding="utf-8")
    changes = {'"minReaderVersion":1': '"minReaderVersion":3', r"\"c2\"": r"\"d2\""}
    for there, other in changes.items():
        assert there in text
        entry.write_text(text.replace(there, other), encoding="utf-8")
        with pytest.raises(DamagedStateError, match=entry_path(0)):
            opened(tmp_path, "reference")
        assert lake.restore(tmp_path, to=latest) == latest
        assert contents(opened(tmp_path, "reference")) == versions[latest]
        assert lake.verify(tmp_path).versions == tuple(range(latest + 1))


def test_an_entry_that_is_gone_is_missed(
    tmp_path: Path, versions: dict[int, dict[str, Any]]
) -> None:
    latest = max(versions)
    (tmp_path / entry_path(latest)).unlink()
    with pytest.raises(DamagedStateError, match=entry_path(latest)):
        opened(tmp_path, "reference")
    # Nothing relies on what notices that.
    (tmp_path / LATEST).write_text("?", encoding="utf-8")
    kb = opened(tmp_path, "reference")
    assert contents(kb) == versions[latest - 1]


def test_a_state_without_its_log_is_not_begun_anew(tmp_path: Path) -> None:
    made(tmp_path, "reference").insert("edge", EDGES)
    shutil.rmtree(tmp_path / "_delta_log")
    with pytest.raises(DamagedStateError, match="data are there, and the log is not"):
        made(tmp_path, "reference")


def test_checkpoints_are_verified_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "CHECKPOINT_EVERY", 3)
    kb = made(tmp_path, "reference")
    for edge in EDGES:
        kb.insert("edge", [edge])
    (checkpoint,) = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    data = checkpoint.read_bytes()
    assert lake.verify(tmp_path).is_whole
    for size in (len(data) - 20, 100, 0):
        checkpoint.write_bytes(data[:size])
        (problem,) = lake.verify(tmp_path).problems
        assert problem.file.endswith(checkpoint.name)
        with pytest.raises(DamagedStateError, match=checkpoint.name):
            opened(tmp_path, "reference")
    assert lake.restore(tmp_path, to=kb.version or 0) == kb.version
    assert contents(opened(tmp_path, "reference")) == contents(kb)
    assert lake.verify(tmp_path).is_whole


# ------------------------------------------------------------------ commits of others


def appended(place: Path) -> None:
    row = {"part": "facts", "relation": "edge", "c0": 7, "c1": 8, "holds": 1}
    table = pa.Table.from_pylist([row], schema=schema(NARROWEST))
    write_deltalake(place, table, mode="append")


FOREIGN: dict[str, Callable[[Path], object]] = {
    "append": appended,
    "delete": lambda place: DeltaTable(place).delete("relation = 'edge'"),
    "column": lambda place: DeltaTable(place).alter.add_columns(
        [Field("other", PrimitiveType("long"))]
    ),
    "settings": lambda place: DeltaTable(place).alter.set_table_properties(
        {"delta.enableExpiredLogCleanup": "true"}
    ),
    "optimize": lambda place: DeltaTable(place).optimize.compact(),
}


@pytest.mark.parametrize("commit", FOREIGN.values(), ids=FOREIGN)
def test_what_others_wrote_is_refused_until_the_state_is_restored(
    tmp_path: Path, commit: Callable[[Path], object]
) -> None:
    kb = made(tmp_path, "reference")
    for edge in EDGES:
        kb.insert("edge", [edge])
    before, last = contents(kb), kb.version or 0
    commit(tmp_path)
    refused = pytest.raises(ForeignCommitError, match=f"not make version {last + 1}")
    with refused as caught:
        opened(tmp_path, "reference")
    assert f"restore {tmp_path} --to {last}`" in str(caught.value)
    assert "delta-rs" in str(caught.value)
    with pytest.raises(ForeignCommitError):
        kb.insert("edge", [("x", "y")])
    assert contents(kb) == before
    assert not lake.verify(tmp_path).is_whole
    assert lake.restore(tmp_path, to=last) == last + 2
    again = opened(tmp_path, "reference")
    assert contents(again) == before
    again.insert("edge", [("x", "y")])
    assert contents(opened(tmp_path, "reference")) == contents(again)
    assert lake.verify(tmp_path).is_whole
    with pytest.raises(StateConflictError):
        kb.insert("edge", [("x", "y")])


def test_tidying_up_by_others_is_fine(tmp_path: Path) -> None:
    kb = made(tmp_path, "reference")
    kb.insert("edge", EDGES)
    DeltaTable(tmp_path).vacuum(0, dry_run=False, enforce_retention_duration=False)
    DeltaTable(tmp_path).create_checkpoint()
    assert contents(opened(tmp_path, "reference")) == contents(kb)
    kb.insert("edge", [("x", "y")])
    assert contents(opened(tmp_path, "reference")) == contents(kb)
    assert lake.verify(tmp_path).is_whole


# ------------------------------------------------------------------------- going back


def test_going_back_is_a_version_of_its_own(
    tmp_path: Path, versions: dict[int, dict[str, Any]]
) -> None:
    latest = max(versions)
    kb = opened(tmp_path, "reference")
    kb.update(insert={"edge": [("p", "q")]}, batch=("orders", 5))
    assert lake.restore(tmp_path, to=latest - 1) == latest + 2
    again = opened(tmp_path, "reference")
    assert contents(again) == versions[latest - 1]
    # The batch is not among what was restored, so it may come again.
    assert again.last_batch("orders") is None
    again.update(insert={"edge": [("p", "q")]}, batch=("orders", 5))
    assert contents(opened(tmp_path, "reference", version=latest)) == versions[latest]
    with pytest.raises(StateConflictError):
        kb.insert("edge", [("r", "s")])
    # Who follows the changes goes from the version that was restored to the new ones.
    feed = list(lake.changes(tmp_path, since=latest - 1))
    assert {change.version for change in feed} == {latest + 3}
    assert list(lake.changes(tmp_path, since=0))[-1] in feed
    with pytest.raises(MissingVersionError, match="given up"):
        list(lake.changes(tmp_path, since=latest + 1))


def test_what_is_not_whole_is_not_restored(
    tmp_path: Path, versions: dict[int, dict[str, Any]]
) -> None:
    flip(newest_facts(tmp_path))
    latest = max(versions)
    with pytest.raises(RestoringError, match=f"version {latest} of") as caught:
        lake.restore(tmp_path, to=latest)
    assert f"that is whole is {latest - 1}" in str(caught.value)
    for version in (-1, 99):
        with pytest.raises(RestoringError, match="versions go from 0 to"):
            lake.restore(tmp_path, to=version)
    with pytest.raises(StateError, match="there is no state"):
        lake.restore(tmp_path / "nothing", to=1)


# ------------------------------------------------- states of older versions of Evermat


def made_older(place: Path) -> None:
    """Take the digests out of a state, as older versions of Evermat wrote it."""
    for file in (place / "_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            for name in ("evermatContents", "evermatDigest"):
                line.get("commitInfo", {}).pop(name, None)
        file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (place / LATEST).unlink()


def test_states_without_digests_open_and_gain_them(
    tmp_path: Path, versions: dict[int, dict[str, Any]]
) -> None:
    kb = opened(tmp_path, "reference")
    kb.update(insert={"edge": [("p", "q")]}, batch=("orders", 5))
    made_older(tmp_path)
    found = lake.verify(tmp_path)
    assert found.is_whole
    assert found.without_digest == found.files
    again = opened(tmp_path, "reference")
    assert contents(again) == contents(kb)
    assert again.last_batch("orders") == 5
    for version, expected in versions.items():
        assert contents(opened(tmp_path, "reference", version=version)) == expected
    again.insert("edge", [("x", "y")])
    assert contents(opened(tmp_path, "reference")) == contents(again)
    assert lake.verify(tmp_path).is_whole
    # From now on damage to a file of the older version is noticed.
    file = tmp_path / lake.history(tmp_path)[2].changes[0]
    flip(file)
    with pytest.raises(DamagedStateError, match=file.name):
        opened(tmp_path, "reference")


def test_what_others_wrote_into_an_older_state_is_refused(tmp_path: Path) -> None:
    made(tmp_path, "reference").insert("edge", EDGES)
    made_older(tmp_path)
    appended(tmp_path)
    with pytest.raises(ForeignCommitError, match="not make version 3"):
        opened(tmp_path, "reference")


# --------------------------------------------------------------------- Parquet files


def written(
    rows: int, group: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[bytes, str]:
    monkeypatch.setattr(digested_parquet, "ROWS_IN_A_GROUP", group)
    sink = pa.BufferOutputStream()
    table = pa.table({"id": range(rows), "text": [str(at) for at in range(rows)]})
    writer = DigestedWriter(sink, table.schema)
    writer.write(table)
    digest = writer.close()
    data = sink.getvalue().to_pybytes()
    assert len(data) == writer.size
    return data, digest


@pytest.mark.parametrize("rows", [0, 3, 10])
def test_every_byte_of_a_file_is_verified(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, digest = written(rows, 4, monkeypatch)
    whole = digest_of_file(pa.BufferReader(data))
    for each in (digest, whole, None):
        found = DigestedFile(pa.BufferReader(data), each).read()
        assert found["id"].to_pylist() == list(range(rows))
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        for each in (digest, whole):
            with pytest.raises(DamagedParquetError):
                DigestedFile(pa.BufferReader(bytes(damaged)), each).verify()


def test_a_row_group_is_read_and_verified_without_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, digest = written(10, 4, monkeypatch)
    damaged = bytearray(data)
    damaged[10] ^= 1
    file = DigestedFile(pa.BufferReader(bytes(damaged)), digest)
    assert file.parquet.read_row_group(1)["id"].to_pylist() == [4, 5, 6, 7]
    with pytest.raises(DamagedParquetError, match="row group 0"):
        file.read()


def test_other_readers_find_checksums_of_pages(tmp_path: Path) -> None:
    made(tmp_path, "reference").insert("edge", EDGES)
    file = newest_facts(tmp_path)
    pq.read_table(file, page_checksum_verification=True, partitioning=None)
    metadata = pq.read_metadata(file)
    first = metadata.row_group(0).column(0)
    flip(file, first.data_page_offset + first.total_compressed_size - 1)
    with pytest.raises(OSError, match=r"could not verify page integrity|CRC"):
        pq.read_table(file, page_checksum_verification=True, partitioning=None)
    assert evermat.KnowledgeBase.open(tmp_path, engine="reference", version=1).rules
