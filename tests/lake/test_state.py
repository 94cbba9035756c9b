"""A state on a lake: opened again, it is what it was; every update is one version."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evermat
from evermat import lake
from evermat.engines.reference.store import Store
from evermat.errors import EvermatError
from evermat.kb.transaction import TornError
from evermat.lake.errors import (
    BatchError,
    MissingVersionError,
    ReadOnlyStateError,
    StateConflictError,
    StateError,
    StateSettingsError,
)
from evermat.lake.layout import FACTS, PART
from evermat.lake.rows import SEVERAL
from evermat.lake.state import open_state
from evermat.lake.table import StateTable
from evermat.maintenance.rules import no_modules
from lake.states import EDGES, RULES, contents, made, opened

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evermat import KnowledgeBase
    from evermat.kb.equality import Equality


def from_scratch(kb: KnowledgeBase) -> dict[str, Any]:
    """What the given facts of a knowledge base lead to, worked out anew."""
    new = evermat.KnowledgeBase(kb.rules, engine="reference")
    new.load({name: list(kb.facts(name, "explicit")) for name in kb.predicates})
    return contents(new)


def test_opened_again_it_is_what_it_was(tmp_path: Path, engine_name: str) -> None:
    kb = made(tmp_path, engine_name)
    assert kb.version == 1
    kb.insert("edge", EDGES)
    kb.load({"node": [("a",), ("z",)]})
    kb.delete("edge", [("c", "a")])
    assert kb.version == 4
    again = opened(tmp_path, engine_name)
    assert again.version == 4
    assert contents(again) == contents(kb) == from_scratch(kb)


def test_opened_again_it_is_maintained_and_not_materialised(
    tmp_path: Path, engine_name: str
) -> None:
    made(tmp_path, engine_name).insert("edge", EDGES)
    again = opened(tmp_path, engine_name)
    change = again.delete("edge", [("b", "c")])
    assert change.report.algorithm not in {"rematerialise", "auto"}
    assert ("a", "c") in change.removed("reach").to_list()
    assert contents(again) == from_scratch(again)
    assert contents(opened(tmp_path, engine_name)) == contents(again)


@pytest.mark.parametrize("writer", ["reference", "embedded"])
def test_one_engine_opens_what_another_wrote(tmp_path: Path, writer: str) -> None:
    reader = {"reference": "embedded", "embedded": "reference"}[writer]
    kb = made(tmp_path, writer)
    kb.insert("edge", EDGES)
    other = opened(tmp_path, reader)
    assert contents(other) == contents(kb)
    other.insert("edge", [("c", "d")])
    assert contents(opened(tmp_path, writer)) == contents(other)


def test_rules_come_and_go(tmp_path: Path, engine_name: str) -> None:
    kb = made(tmp_path, engine_name)
    kb.insert("edge", EDGES)
    with kb.transaction() as tx:
        tx.add_rules("back(?y, ?x) :- reach(?x, ?y) .")
        tx.remove_rules("far(?x, ?y) :- reach(?x, ?y), not edge(?x, ?y) .")
        tx.insert("edge", [("c", "e")])
    assert kb.version == 3
    again = opened(tmp_path, engine_name)
    assert contents(again) == contents(kb) == from_scratch(kb)


def test_rules_of_a_state_are_on_no_line_of_a_file(tmp_path: Path) -> None:
    rules = "\n\np(?x) :- q(?x) ."
    kb = evermat.KnowledgeBase(rules, engine="reference", state=tmp_path / "state")
    kb.insert("q", [(1,)])
    assert "(line 3)" in str(kb.explain("p(1)"))
    kb = evermat.KnowledgeBase.open(tmp_path / "state", engine="reference")
    assert "(line" not in str(kb.explain("p(1)"))


def test_given_rules_are_what_the_program_becomes(tmp_path: Path) -> None:
    made(tmp_path).insert("edge", EDGES)
    same = evermat.KnowledgeBase(RULES, state=tmp_path)
    assert same.version == 2
    shorter = "\n".join(RULES.splitlines()[:3])
    kb = evermat.KnowledgeBase(shorter + "new(?x) :- edge(?x, ?x) .", state=tmp_path)
    assert kb.version == 3
    assert len(kb.rules) == 3
    assert not set(kb.facts("far"))
    assert contents(opened(tmp_path)) == contents(kb)


def test_materialising_again_changes_no_fact(tmp_path: Path, engine_name: str) -> None:
    kb = made(tmp_path, engine_name)
    kb.insert("edge", EDGES)
    before = contents(kb)
    kb.materialise()
    assert kb.version == 2
    assert contents(opened(tmp_path, engine_name)) == before


def test_old_versions_can_be_asked_and_not_changed(tmp_path: Path) -> None:
    kb = made(tmp_path)
    kb.insert("edge", EDGES[:2])
    before = contents(kb)
    kb.delete("edge", EDGES[:1])
    old = opened(tmp_path, version=2)
    assert old.version == 2
    assert contents(old) == before
    with pytest.raises(ReadOnlyStateError, match="version 2 is not the latest"):
        old.insert("edge", [(1, 1)])
    assert contents(old) == before
    opened(tmp_path, version=3).insert("edge", [(1, 1)])
    for wrong in (-1, 9, "1"):
        with pytest.raises(MissingVersionError, match=f"has no version {wrong!r}"):
            opened(tmp_path, version=wrong)


def test_there_is_one_writer_at_a_time(tmp_path: Path) -> None:
    first = made(tmp_path)
    first.insert("edge", EDGES)
    second = opened(tmp_path)
    first.insert("edge", [("x", "y")])
    before = contents(second)
    updates: list[Callable[[], object]] = [
        lambda: second.insert("edge", [("p", "q")]),
        lambda: second.delete("edge", EDGES[:1]),
        second.materialise,
    ]
    for update in updates:
        with pytest.raises(StateConflictError, match="another writer"):
            update()
        assert contents(second) == before
    assert contents(opened(tmp_path)) == contents(first)


def test_failed_updates_leave_no_trace(tmp_path: Path, engine_name: str) -> None:
    kb = evermat.KnowledgeBase(
        "half(?x, ?z) :- number(?x), ?z = 10 / ?x .", engine=engine_name, state=tmp_path
    )
    kb.insert("number", [(1,), (2,)])
    before, version = contents(kb), kb.version
    with pytest.raises(EvermatError, match="division of 10 by zero"):
        kb.insert("number", [(0,)])
    assert kb.version == version
    assert contents(kb) == before == contents(opened(tmp_path, engine_name))
    kb.plan(insert={"number": [(5,)]})
    assert kb.version == version
    kb.insert("number", [(5,)])
    assert contents(kb) == contents(opened(tmp_path, engine_name))


def test_an_update_that_is_interrupted_after_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = made(tmp_path)
    kb.insert("edge", EDGES)
    commit = StateTable.commit

    def interrupted(self: StateTable, *files: Any, **more: Any) -> None:
        commit(self, *files, **more)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StateTable, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            kb.insert("edge", [("x", "y")])
    # Memory is behind: what it would answer or write now does not fit the state.
    for call in (partial(kb.insert, "edge", [("p", "q")]), partial(kb.count, "edge")):
        with pytest.raises(TornError, match="open the state again"):
            call()
    again = opened(tmp_path)
    assert ("x", "y") in set(again.facts("reach"))
    assert contents(again) == from_scratch(again)


def test_memory_that_fails_after_the_commit_is_not_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kb = made(tmp_path, "reference")
    kb.insert("edge", EDGES)

    take = Store.take
    failures: list[str] = []

    def full(self: Store, other: Store) -> None:
        if not failures and lake.history(tmp_path)[-1].number > 2:
            failures.append("once")
            raise MemoryError
        take(self, other)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "take", full)
        with pytest.raises(MemoryError):
            kb.insert("edge", [("x", "y")])
    with pytest.raises(TornError, match="open the state again"):
        kb.insert("edge", [("p", "q")])
    assert ("x", "y") in set(opened(tmp_path).facts("reach"))


def test_a_state_that_was_made_and_nothing_else(tmp_path: Path) -> None:
    open_state(tmp_path)
    with pytest.raises(StateError, match="this version is empty"):
        opened(tmp_path, version=0)
    assert opened(tmp_path).version == 1
    kb = made(tmp_path)
    kb.insert("edge", EDGES)
    assert contents(opened(tmp_path)) == contents(kb)


def test_batches_are_recorded_with_the_update(tmp_path: Path) -> None:
    kb = made(tmp_path)
    assert kb.last_batch("orders") is None
    kb.update(insert={"edge": EDGES}, batch=("orders", 17))
    kb.update(insert={"edge": EDGES}, batch=("other", 1))
    again = opened(tmp_path)
    assert (again.last_batch("orders"), again.last_batch("other")) == (17, 1)
    assert [each.batch for each in lake.history(tmp_path)][2:] == [
        ("orders", 17),
        ("other", 1),
    ]
    version = again.version
    for number in (17, 16):
        with pytest.raises(BatchError, match="the last is 17"):
            again.update(delete={"edge": EDGES}, batch=("orders", number))
    parts: list[Any] = [("", 1), ("orders", -1), ("evermat", 7)]
    types: list[Any] = [("orders", "18"), ("orders", 18.5), (7, 18), ("orders",), ()]
    for wrong in (*parts, *types):
        with pytest.raises(BatchError, match="cannot be a batch"):
            again.update(delete={"edge": EDGES}, batch=wrong)
    assert again.version == version
    with pytest.raises(EvermatError, match="recorded with the state"):
        evermat.KnowledgeBase().update(batch=("orders", 1))


def test_many_small_updates_do_not_pile_up(tmp_path: Path) -> None:
    kb = evermat.KnowledgeBase("reach(?x, ?y) :- edge(?x, ?y) .", state=tmp_path)
    for number in range(6 * SEVERAL):
        kb.insert("edge", [(number, f"text {number}")])
        if number % 3:
            kb.delete("edge", [(number, f"text {number}")])
    table = StateTable.open(tmp_path)
    assert table is not None
    assert len(table.files(FACTS)) < 3 * SEVERAL
    assert contents(opened(tmp_path)) == contents(kb)


def test_a_change_is_written_and_not_the_whole_state(tmp_path: Path) -> None:
    kb = evermat.KnowledgeBase("reach(?x, ?y) :- edge(?x, ?y) .", state=tmp_path)
    kb.insert("edge", [(number, str(number)) for number in range(3000)])
    table = StateTable.open(tmp_path)
    assert table is not None
    known = {file.path for file in table.files(FACTS)}
    kb.delete("edge", [(7, "7")])
    table = StateTable.open(tmp_path)
    assert table is not None
    new = [file for file in table.files(FACTS) if file.path not in known]
    assert [file.rows for file in new] == [2]


def test_wide_relations_make_room_for_themselves(tmp_path: Path) -> None:
    kb = evermat.KnowledgeBase("p(?a) :- w(?a, ?b, ?c, ?d, ?e, ?f) .", state=tmp_path)
    kb.insert("p", [("x",)])
    kb.insert("w", [(1, "2", 3.5, "d", "e", "f")])
    kb.insert("p", [("y",)])
    assert contents(opened(tmp_path)) == contents(kb)
    assert len(list(lake.changes(tmp_path, since=0))) == 4


def test_feed_of_changes(tmp_path: Path) -> None:
    kb = made(tmp_path)
    kb.insert("edge", [("a", "b"), ("b", 7)])
    kb.delete("edge", [("a", "b")])
    feed = list(lake.changes(tmp_path, since=2))
    assert set(feed) == {
        (3, "-", "edge", ("a", "b")),
        (3, "-", "reach", ("a", "b")),
        (3, "-", "reach", ("a", 7)),
        (3, "-", "far", ("a", 7)),
    }
    state: set[tuple[str, tuple[object, ...]]] = set()
    for _, sign, predicate, row in lake.changes(tmp_path, since=0):
        (state.add if sign == "+" else state.remove)((predicate, row))
    assert state == {(name, row) for name in kb.predicates for row in kb.facts(name)}
    table = lake.change_table(tmp_path, since=2)
    assert table.column_names == ["version", "sign", "predicate", "values"]
    assert ["a", "7"] not in table["values"].to_pylist()
    assert ['"a"', "7"] in table["values"].to_pylist()


def test_history_says_what_came_and_left(tmp_path: Path) -> None:
    kb = made(tmp_path)
    kb.insert("edge", [("a", "b")])
    kb.delete("edge", [("a", "b")])
    versions = lake.history(tmp_path)
    assert [each.number for each in versions] == [0, 1, 2, 3]
    assert [each.is_update for each in versions] == [False, True, True, True]
    assert versions[2].added == {"edge": 1, "reach": 1}
    assert versions[3].removed == {"edge": 1, "reach": 1}


def test_vacuum_keeps_what_it_is_told_to_keep(tmp_path: Path) -> None:
    kb = evermat.KnowledgeBase("r(?x) :- e(?x) .", state=tmp_path)
    for number in range(2 * SEVERAL):
        kb.insert("e", [(number,)])
    latest = kb.version
    assert latest is not None
    removed = lake.vacuum(tmp_path, keep=3)
    assert removed
    assert contents(opened(tmp_path, version=latest)) == contents(kb)
    assert len(set(opened(tmp_path, version=latest - 2).facts("e"))) == latest - 3
    with pytest.raises(StateError, match="missing"):
        opened(tmp_path, version=5)
    with pytest.raises(MissingVersionError, match="no longer there"):
        list(lake.changes(tmp_path, since=1))
    # Vacuuming is no update: whoever has the state open goes on.
    kb.insert("e", [("more",)])
    assert contents(opened(tmp_path)) == contents(kb)
    with pytest.raises(StateSettingsError):
        lake.vacuum(tmp_path, keep=0)


def test_what_a_killed_writer_leaves_is_vacuumed(tmp_path: Path) -> None:
    kb = made(tmp_path / "ä b")
    kb.insert("edge", EDGES)
    table = StateTable.open(kb.state or "")
    assert table is not None
    stream = table.storage().open_output_stream(f"{PART}={FACTS}/half.parquet")
    stream.write(b"the first half")
    stream.flush()
    assert lake.vacuum(kb.state or "") == [f"{PART}={FACTS}/half.parquet"]
    stream.close()
    assert contents(evermat.KnowledgeBase.open(kb.state or "")) == contents(kb)


def test_a_place_that_does_not_answer_is_named() -> None:
    place = "hdfs://127.0.0.1:9/folder/state"
    with pytest.raises(StateError, match="refused") as caught:
        evermat.KnowledgeBase(RULES, state=place)
    assert caught.value.step == f"open the state at `{place}`"
    assert "\x1b" not in caught.value.message


def test_a_sort_of_place_that_nobody_knows_is_named() -> None:
    with pytest.raises(StateError, match="Unknown scheme: nowhere"):
        evermat.KnowledgeBase(RULES, state="nowhere://folder/state")


def test_settings_are_those_of_the_state(tmp_path: Path) -> None:
    evermat.KnowledgeBase(RULES, counters=False, state=tmp_path)
    with pytest.raises(StateSettingsError, match="counters=False"):
        evermat.KnowledgeBase(RULES, state=tmp_path)
    kb = opened(tmp_path)
    kb.insert("edge", EDGES)
    assert set(opened(tmp_path).facts("reach")) == set(kb.facts("reach"))


def test_axioms_of_equality_are_rules_like_others(tmp_path: Path) -> None:
    kb = evermat.KnowledgeBase(equality="axioms", state=tmp_path)
    kb.load({"same_as": [("a", "b")], "likes": [("a", "c")]})
    again = opened(tmp_path)
    assert ("b", "c") in set(again.facts("likes"))
    assert contents(again) == contents(kb)


def test_closures_are_written_out(tmp_path: Path) -> None:
    rules = "t(?x, ?y) :- e(?x, ?y) . t(?x, ?z) :- t(?x, ?y), t(?y, ?z) ."
    kb = evermat.KnowledgeBase(rules, state=tmp_path)
    kb.insert("e", [(1, 2), (2, 3), (3, 4)])
    kb.delete("e", [(2, 3)])
    assert lake.read(tmp_path, "t").num_rows == 2
    again = opened(tmp_path)
    again.insert("e", [(2, 3), (4, 1)])
    assert len(set(again.facts("t"))) == 16
    assert contents(again) == from_scratch(again)
    assert contents(opened(tmp_path)) == contents(again)


@pytest.mark.parametrize(
    "again",
    [
        "q(?x, ?z) :- q(?x, ?y), e(?y, ?z) .",
        "q(?a, ?c) :- q(?a, ?b), e(?b, ?c) .",
        "q(?x, ?z) :- q(?x, ?y), e(?y, ?w), ?w = ?z .",
    ],
)
def test_rule_of_a_closure_comes_back(tmp_path: Path, again: str) -> None:
    """Of two rules that could be a closure, the first is taken: also when opened."""
    first = "q(?x, ?z) :- q(?x, ?y), e(?y, ?z) ."
    rules = f"{first} q(?x, ?z) :- q(?x, ?y), f(?y, ?z) ."
    kb = evermat.KnowledgeBase(rules, state=tmp_path)
    kb.load({"q": [(1, 2)], "e": [(2, 3)], "f": [(3, 4)]})
    kb.update(remove_rules=first, add_rules=[again, "n(?x) :- q(?x, ?y) ."])
    opened_again = opened(tmp_path)
    assert contents(opened_again) == contents(kb) == from_scratch(kb)
    opened_again.delete("e", [(2, 3)])
    assert set(opened_again.facts("q")) == {(1, 2)}


@pytest.mark.parametrize("equality", ["off", "rewrite"])
def test_of_two_spellings_each_is_kept(tmp_path: Path, equality: Equality) -> None:
    one, other = "q(?x) :- p(?x) .", "q(?x) :- p(?y), ?x = ?y ."
    kb = evermat.KnowledgeBase(one, equality=equality, state=tmp_path)
    kb.insert("p", [(1,)])
    kb.update(add_rules=other)
    kb = opened(tmp_path)
    assert {str(rule) for rule in kb.rules} == {one, other}
    kb.update(remove_rules=one)
    kb = opened(tmp_path)
    assert [str(rule) for rule in kb.rules] == [other]
    assert set(kb.facts("q")) == {(1,)}


def test_state_of_modules_that_are_not_there(tmp_path: Path) -> None:
    kb = evermat.KnowledgeBase(RULES, state=tmp_path)
    kb.insert("edge", EDGES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evermat.kb.materialisation.find_modules", no_modules)
        with pytest.raises(StateSettingsError, match="reach"):
            opened(tmp_path)


def test_a_place_may_be_a_uri(tmp_path: Path) -> None:
    place = (tmp_path / "with a space").as_uri()
    kb = evermat.KnowledgeBase(RULES, state=place, storage_options={"timeout": "5s"})
    kb.insert("edge", EDGES)
    assert kb.state == place
    assert contents(evermat.KnowledgeBase.open(place)) == contents(kb)
    assert len(lake.history(place)) == 3
    with pytest.raises(StateError, match="Unknown scheme: nowhere"):
        evermat.KnowledgeBase(state="nowhere://bucket/state")


# --------------------------------------------------------------------- other readers


def test_others_read_it_as_a_table(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    polars = pytest.importorskip("polars")
    kb = made(tmp_path)
    kb.insert("edge", EDGES)
    kb.delete("edge", EDGES[:1])
    delta = open_state(tmp_path)._table.delta  # noqa: SLF001  any Delta reader will do
    state = delta.to_pyarrow_dataset()
    connection = duckdb.connect()
    connection.register("state", state)
    rows = connection.execute(
        """
        SELECT coalesce(a.text, c0::text), coalesce(b.text, c1::text)
        FROM (SELECT c0, c1 FROM state WHERE part = 'facts' AND relation = 'reach'
              GROUP BY ALL HAVING sum(holds) > 0) facts
        LEFT JOIN (SELECT id, text FROM state WHERE part = 'terms') a ON a.id = c0
        LEFT JOIN (SELECT id, text FROM state WHERE part = 'terms') b ON b.id = c1
        """
    ).fetchall()
    expected = {(str(x), str(y)) for x, y in kb.facts("reach")}
    assert set(rows) == expected
    frame = polars.read_delta(str(tmp_path))
    sums = (
        frame.filter(
            (polars.col("part") == "facts") & (polars.col("relation") == "edge")
        )
        .group_by("c0", "c1")
        .agg(polars.col("given").sum())
        .filter(polars.col("given") > 0)
    )
    assert sums.height == len(EDGES) - 1


# ----------------------------------------------------------------------- random runs

ROW = st.tuples(st.integers(0, 4), st.sampled_from([0, 1, 2, "a", "b"]))
STEP = st.tuples(st.booleans(), st.lists(ROW, max_size=4), st.booleans())


@given(steps=st.lists(STEP, min_size=1, max_size=12))
@settings(max_examples=25)
def test_any_course_of_updates_and_openings(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, Any, bool]]
) -> None:
    path = tmp_path_factory.mktemp("state")
    kb = made(path)
    for is_insertion, rows, reopens in steps:
        if is_insertion:
            kb.insert("edge", rows)
        else:
            kb.update(delete={"edge": rows}, insert={"node": [(1,)]})
        if reopens:
            again = opened(path)
            assert contents(again) == contents(kb)
            kb = again
    assert contents(opened(path)) == contents(kb) == from_scratch(kb)
