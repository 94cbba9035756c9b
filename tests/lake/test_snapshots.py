"""Snapshots: a state that is mapped into memory is what it is when it is read."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import evermat
from evermat import lake
from evermat.engines.embedded.mapped_file import (
    ArrayWriter,
    DamagedFileError,
    MappedArrays,
)
from evermat.engines.spark.driver_engine import driver_engine
from evermat.lake import snapshots
from evermat.pipeline.program import save_snapshot
from lake.states import contents, made, opened

if TYPE_CHECKING:
    from pathlib import Path

VALUES: list[Any] = ["a", "b", "c", 1, 2.5, 2**40, True, "", "ä" * 20]


@pytest.fixture(autouse=True)
def maps(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Snapshots of any size; whether each opening took one up."""
    monkeypatch.setattr(snapshots, "LEAST_ROWS", 0)
    found: list[bool] = []
    newest = snapshots.newest

    def noting(table: Any) -> Any:
        snapshot = newest(table)
        found.append(snapshot is not None)
        return snapshot

    monkeypatch.setattr(snapshots, "newest", noting)
    return found


def read(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is in a state that is opened without a snapshot."""
    with monkeypatch.context() as patch:
        patch.setenv(snapshots.SWITCH, "0")
        return contents(opened(path))


def files(path: Path) -> list[Path]:
    folder = path / snapshots.FOLDER
    return list(folder.iterdir()) if folder.is_dir() else []


def pair(chance: random.Random) -> tuple[Any, Any]:
    return chance.choice(VALUES), chance.choice(VALUES)


def change(kb: evermat.KnowledgeBase, chance: random.Random) -> None:
    """A random update, also of derived predicates, wide ones and new constants."""
    new = str(chance.random())
    edges = [pair(chance) for _ in range(chance.randrange(4))]
    wide = [(*pair(chance), *pair(chance), new)]
    insert = {"edge": edges, "wide": wide, "node": [(new,), ("a",)]}
    known = kb.query("edge(?x, ?y)").to_list()
    gone = chance.sample(known, min(len(known), chance.randrange(3)))
    delete = {"edge": gone, "reach": [pair(chance)]}
    if chance.random() < 0.5:
        insert["reach"] = [pair(chance)]
    kb.update(insert=insert, delete=delete)


@pytest.mark.parametrize("seed", range(6))
def test_any_course_of_updates(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maps: list[bool]
) -> None:
    chance = random.Random(seed)  # noqa: S311  not for secrets
    kb = made(tmp_path)
    kb.insert("wide", [(1, 2, 3, 4, 5)])
    kb.insert("edge", [(at, at + 1) for at in range(20)])
    kb.insert("edge", [pair(chance) for _ in range(20)])
    for _ in range(10):
        change(kb, chance)
        if chance.random() < 0.6:
            assert contents(opened(tmp_path)) == read(tmp_path, monkeypatch)
            kb = opened(tmp_path)
        plain = evermat.KnowledgeBase([str(rule) for rule in kb.rules])
        plain.load({name: kb.facts(name, "explicit") for name in kb.predicates})
        assert contents(kb) == contents(plain)
    assert any(maps)


def test_what_is_mapped_stays_as_it_was_written(
    tmp_path: Path, maps: list[bool]
) -> None:
    made(tmp_path).load({"edge": [(at, -at) for at in range(300)]})
    (file,) = files(tmp_path)
    before = file.read_bytes()
    kb = opened(tmp_path)
    kb.update(insert={"edge": [(30, "new")]}, delete={"edge": [(3, -3)]})
    assert maps == [True]
    assert file.read_bytes() == before
    assert files(tmp_path) == [file]


def test_pipelines_save_after_several_versions(tmp_path: Path) -> None:
    kb = made(tmp_path)
    kb.load({"edge": [(at, -at) for at in range(300)]})
    (first,) = files(tmp_path)
    for at in range(snapshots.WORTH):
        assert files(tmp_path) == [first]
        save_snapshot(kb)
        kb.insert("edge", [(at, "new")])
    save_snapshot(kb)
    assert first not in files(tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_is_seen(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)  # noqa: S311  not for secrets
    made(tmp_path).load({"edge": [pair(chance) for _ in range(40)]})
    expected = read(tmp_path, monkeypatch)
    (file,) = files(tmp_path)
    data = file.read_bytes()
    for _ in range(40):
        damaged = bytearray(data)
        at = chance.randrange(len(data))
        damaged[at] ^= 1 << chance.randrange(8)
        file.write_bytes(damaged)
        assert contents(opened(tmp_path)) == expected, at
    for damage in (b"", data[:-1], data[: len(data) // 2], data + b"x", b"evermat1"):
        file.write_bytes(damage)
        assert contents(opened(tmp_path)) == expected


def test_a_snapshot_of_another_state_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maps: list[bool]
) -> None:
    made(tmp_path / "one").load({"edge": [(1, 2)]})
    made(tmp_path / "two").load({"edge": [(3, 4)]})
    shutil.rmtree(tmp_path / "two" / snapshots.FOLDER)
    shutil.copytree(
        tmp_path / "one" / snapshots.FOLDER, tmp_path / "two" / snapshots.FOLDER
    )
    expected = read(tmp_path / "two", monkeypatch)
    assert contents(opened(tmp_path / "two")) == expected
    monkeypatch.setattr(snapshots, "FORMAT", 2)
    assert contents(opened(tmp_path / "one"))["edge"][0] == {(1, 2)}
    assert not any(maps)


def test_going_back_and_vacuuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = made(tmp_path)
    kb.load({"edge": [(at, at + 1) for at in range(50)]})
    version = kb.version
    for at in range(4):
        kb.insert("edge", [(at, f"b{at}")])
        old = contents(opened(tmp_path, version=version))
        assert ("b", f"b{at}") not in old["edge"][0]
    expected = read(tmp_path, monkeypatch)
    lake.vacuum(tmp_path, keep=1)
    assert contents(opened(tmp_path)) == expected
    assert files(tmp_path)
    kb = opened(tmp_path)
    version = kb.version
    kb.insert("edge", [("x", "y")])
    assert version is not None
    lake.restore(tmp_path, to=version)
    assert contents(opened(tmp_path)) == expected == read(tmp_path, monkeypatch)


def test_equal_constants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maps: list[bool]
) -> None:
    rules = """
        @prefix owl: <http://www.w3.org/2002/07/owl#> .
        [?x, owl:sameAs, ?y] :- key(?k, ?x), key(?k, ?y) .
    """
    kb = evermat.KnowledgeBase(rules, equality="rewrite", state=tmp_path)
    people = [evermat.IRI(f"http://e/{at}") for at in range(9)]
    kb.insert("key", [(at // 2, person) for at, person in enumerate(people)])

    def held(kb: evermat.KnowledgeBase) -> object:
        facts = [set(kb.facts(name)) for name in ("key", "triple")]
        return facts, set(kb.facts("key", "explicit")), set(kb.representatives())

    def plain() -> object:
        with monkeypatch.context() as patch:
            patch.setenv(snapshots.SWITCH, "0")
            return held(opened(tmp_path))

    for number in range(3):
        kb.insert("key", [(number, people[8])])
        assert held(opened(tmp_path)) == plain() == held(kb)
    kb = opened(tmp_path)
    kb.delete("key", [(1, people[8])])
    assert held(opened(tmp_path)) == plain() == held(kb)
    assert any(maps)


def test_an_update_does_not_fail_with_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: ArrayWriter) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ArrayWriter, "finish", full)
    made(tmp_path).load({"edge": [(1, 2)]})
    assert not files(tmp_path)
    assert contents(opened(tmp_path))["edge"][0] == {(1, 2)}


def test_the_engine_of_a_driver_maps_too(tmp_path: Path, maps: list[bool]) -> None:
    made(tmp_path).load({"edge": [(1, 2), (2, 3)]})
    kb = evermat.KnowledgeBase.open(tmp_path, engine=driver_engine(100))
    assert maps == [True]
    kb.insert("edge", [(3, 4)])
    assert kb.count("reach") == 6


@pytest.mark.spark
def test_facts_of_spark_on_the_driver_are_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maps: list[bool]
) -> None:
    made(tmp_path).load({"edge": [("a", "b"), ("b", "c")]})
    for room in ("1000", "0"):
        monkeypatch.setenv("EVERMAT_SPARK_DRIVER_FACTS", room)
        kb = opened(tmp_path, "spark")
        kb.insert("edge", [("c", f"d{room}")])
        assert contents(opened(tmp_path, "spark")) == read(tmp_path, monkeypatch)
    # Of each round the last opening is the one without.
    assert maps == [True, True, False, False]


def test_arrays_have_room_and_take_no_disk_for_it(tmp_path: Path) -> None:
    path = tmp_path / "arrays"
    some = np.arange(10, dtype=np.int32).reshape(2, 5)
    with ArrayWriter(path) as writer:
        writer.put("some", some, 1 << 20)
        writer.put("none", np.empty((3, 0), np.uint16))
        writer.values["x"] = 1
        writer.finish()
    found = MappedArrays(path)
    found.verify()
    assert (found.used("some") == some).all()
    assert found.get("some").shape == (2, 1 << 20)
    assert not found.get("some")[:, 5:].any()
    assert found.used("none").shape == (3, 0)
    assert found.values == {"x": 1}
    assert path.stat().st_blocks * 512 < 1 << 20
    with pytest.raises(FileExistsError):
        ArrayWriter(path)
    with pytest.raises(DamagedFileError):
        MappedArrays(tmp_path / "nothing")
