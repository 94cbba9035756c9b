"""What users read is the same with modules and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import evermat
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.maintenance.counting import RecursiveProgramError

if TYPE_CHECKING:
    from evermat.results.result import Result

PROGRAMS = {
    "transitive": "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . r(?x, ?y) :- e(?x, ?y) .",
    "symmetric": "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) . r(?y, ?x) :- r(?x, ?y) .",
    "reflexive": """
        r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
        r(?x, ?x) :- r(?x, ?y) .
        r(?y, ?y) :- r(?x, ?y) .
    """,
    "left-linear": "r(?x, ?z) :- r(?x, ?y), e(?y, ?z) . r(?x, ?y) :- e(?x, ?y) .",
    "right-linear": "r(?x, ?z) :- e(?x, ?y), r(?y, ?z) .",
}
READER = "seen(?y) :- r(1, ?y) ."
EDGES = [(1, 2), (2, 3), (3, 1), (3, 4), (5, 6)]
GIVEN = [(4, 5), (1, 2), (7, 1)]
QUESTIONS = [
    "r(?x, ?y)",
    "r(1, ?y)",
    "r(?x, 4)",
    "r(1, 4)",
    "r(?x, ?x)",
    "r(?x, ?y), e(?y, ?z), ?x != ?z",
    "e(?x, ?y), not r(?y, ?x)",
    "e(?x, ?y), not r(?y, _)",
    "r(?x, ?y), r(?y, 1), not e(?x, ?y)",
]


def rows(result: Result) -> set[tuple[object, ...]]:
    found = list(result)
    assert len(found) == len(set(found)) == len(result)
    return set(found)


def observed(kb: evermat.KnowledgeBase) -> dict[str, object]:
    """All that can be asked about the closure."""
    return {
        "facts": rows(kb.facts("r")),
        "explicit": rows(kb.facts("r", "explicit")),
        "derived": rows(kb.facts("r", "derived")),
        "count": kb.count("r"),
        "counters": rows(kb.counters("r")),
        "contains": [kb.contains("r", (1, n)) for n in range(8)],
        "answers": [rows(kb.query(question)) for question in QUESTIONS],
        "sizes": kb.stats()["predicates"]["r"]["facts"],
        "strata": kb.stats()["strata"],
        "plan": len(kb.explain_plan().splitlines()) > 0,
    }


def changed(change: evermat.Change) -> dict[str, object]:
    return {
        "repr": repr(change),
        "sizes": change.sizes,
        "added": rows(change.added("r")),
        "added derived": rows(change.added("r", "derived")),
        "removed": rows(change.removed("r")),
        "removed explicit": rows(change.removed("r", "explicit")),
        "report": (change.report.added, change.report.removed),
    }


@pytest.mark.parametrize("reader", ["", READER])
@pytest.mark.parametrize("name", PROGRAMS)
def test_agree_with_and_without(name: str, reader: str, engine_name: str) -> None:
    kbs = [
        evermat.KnowledgeBase(PROGRAMS[name] + reader, engine=engine_name, modules=on)
        for on in (True, False)
    ]
    first = [changed(kb.load({"e": EDGES, "r": GIVEN})) for kb in kbs]
    assert first[0] == first[1]
    assert observed(kbs[0]) == observed(kbs[1])
    planned = [changed(kb.plan(delete={"e": [(1, 2)], "r": [(7, 1)]})) for kb in kbs]
    assert planned[0] == planned[1]
    assert observed(kbs[0]) == observed(kbs[1])
    second = [
        changed(kb.update(delete={"r": [(4, 5), (7, 1)]}, insert={"e": [(6, 7)]}))
        for kb in kbs
    ]
    assert second[0] == second[1]
    assert observed(kbs[0]) == observed(kbs[1])
    third = [changed(kb.materialise()) for kb in kbs]
    assert third[0] == third[1]


def test_agree_when_rules_make_and_destroy_closures(engine_name: str) -> None:
    transitive = "r(?x, ?z) :- r(?x, ?y), r(?y, ?z) ."
    symmetric = "r(?y, ?x) :- r(?x, ?y) ."
    steps: list[dict[str, str]] = [
        {"add_rules": transitive},
        {"add_rules": symmetric},
        {"add_rules": READER},
        {"remove_rules": symmetric},
        {"remove_rules": READER},
        {"remove_rules": transitive},
        {"add_rules": transitive + symmetric},
    ]
    kbs = [
        evermat.KnowledgeBase(
            "r(?x, ?y) :- e(?x, ?y) .", engine=engine_name, modules=on
        )
        for on in (True, False)
    ]
    for kb in kbs:
        kb.load({"e": EDGES, "r": GIVEN})
    for step in steps:
        changes = [changed(kb.update(**step)) for kb in kbs]  # type: ignore[arg-type]
        assert changes[0] == changes[1], step
        assert observed(kbs[0]) == observed(kbs[1]), step


def test_counting_is_refused_all_the_same(engine_name: str) -> None:
    with pytest.raises(RecursiveProgramError):
        evermat.KnowledgeBase(
            PROGRAMS["transitive"], engine=engine_name, algorithm="counting"
        ).load({"e": EDGES})


def test_changes_can_be_read_long_after(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(PROGRAMS["transitive"], engine=engine_name)
    kb.load({"e": EDGES})
    change = kb.delete("e", [(3, 1)])
    kb.delete("e", EDGES)
    assert rows(change.removed("r")) == {(3, 1), (3, 2), (3, 3), (2, 1), (2, 2), (1, 1)}


def test_a_failed_update_leaves_held_closures_alone(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(PROGRAMS["transitive"], engine=engine_name)
    kb.load({"e": EDGES})
    before = observed(kb)
    with pytest.raises(evermat.EvermatError):
        kb.update(add_rules=READER, delete={"nothing": [(1, 2)]})
    assert observed(kb) == before


def test_modules_are_not_used_without_counters(engine_name: str) -> None:
    kb = evermat.KnowledgeBase(
        PROGRAMS["symmetric"], engine=engine_name, counters=False
    )
    kb.load({"r": [(1, 2)]})
    assert rows(kb.facts("r")) == {(1, 1), (1, 2), (2, 1), (2, 2)}


PARTS = """
    link(?x, ?z, rail) :- link(?x, ?y, rail), link(?y, ?z, rail) .
    link(?y, ?x, sea) :- link(?x, ?y, sea) .
    link(?x, ?z, sea) :- link(?x, ?y, sea), link(?y, ?z, sea) .
    link(?x, ?y, rail) :- e(?x, ?y) .
"""
LINKS = [(1, 2, "rail"), (2, 5, "rail"), (1, 3, "sea"), (3, 4, "sea"), (1, 2, "road")]
PART_READERS = ["", "far(?x) :- link(?x, 4, rail) .", "far(?x) :- link(?x, 4, _) ."]
PART_QUESTIONS = [
    "link(?x, ?y, ?how)",
    "link(?x, ?y, rail)",
    "link(1, ?y, ?how), link(?y, ?z, ?how)",
    "link(4, 3, ?how)",
    "link(?x, ?x, sea)",
    "link(?x, ?y, road), not link(?y, ?x, sea)",
]


def observed_parts(kb: evermat.KnowledgeBase) -> dict[str, object]:
    return {
        "facts": rows(kb.facts("link")),
        "explicit": rows(kb.facts("link", "explicit")),
        "derived": rows(kb.facts("link", "derived")),
        "count": kb.count("link"),
        "counters": rows(kb.counters("link")),
        "contains": [
            kb.contains("link", (3, n, how))
            for n in range(6)
            for how in ("rail", "sea", "road")
        ],
        "answers": [rows(kb.query(question)) for question in PART_QUESTIONS],
        "sizes": kb.stats()["predicates"]["link"]["facts"],
    }


def changed_parts(change: evermat.Change) -> dict[str, object]:
    return {
        "repr": repr(change),
        "added": rows(change.added("link")),
        "added derived": rows(change.added("link", "derived")),
        "removed": rows(change.removed("link")),
        "removed explicit": rows(change.removed("link", "explicit")),
        "report": (change.report.added, change.report.removed),
    }


@pytest.mark.parametrize("reader", PART_READERS)
def test_agree_where_closures_are_parts_of_a_relation(
    reader: str, engine_name: str
) -> None:
    kbs = [
        evermat.KnowledgeBase(PARTS + reader, engine=engine_name, modules=on)
        for on in (True, False)
    ]
    steps: list[dict[str, object]] = [
        {"insert": {"e": EDGES, "link": LINKS}},
        {"delete": {"link": [(1, 2, "rail"), (3, 4, "sea"), (1, 2, "road")]}},
        {
            "insert": {"link": [(5, 1, "sea"), (4, 1, "road")]},
            "delete": {"e": [(3, 1)]},
        },
        {"delete": {"link": [(2, 5, "rail")]}, "algorithm": "remat"},
        {"add_rules": "far(?x) :- link(?x, 1, sea) ."},
        {"remove_rules": "link(?y, ?x, sea) :- link(?x, ?y, sea) ."},
        {"insert": {"link": [(6, 7, "sea"), (7, 6, "rail")]}},
    ]
    for step in steps:
        changes = [changed_parts(kb.update(**step)) for kb in kbs]  # type: ignore[arg-type]
        assert changes[0] == changes[1], step
        assert observed_parts(kbs[0]) == observed_parts(kbs[1]), step


def test_parts_that_nobody_reads_are_held() -> None:
    kb = evermat.KnowledgeBase(PARTS + PART_READERS[1])
    kb.load({"link": LINKS, "e": EDGES})
    stored = kb._engine.statistics()["link"]["facts"]  # noqa: SLF001  what is inside
    rails = sum(how == "rail" for *_, how in kb.facts("link"))
    # Rails are read and written out; of the sea there are only the given facts.
    assert stored == rails + 3


@pytest.mark.parametrize("question", ["r(1, ?y)", "r(?x, 4)", "r(?y, 9)"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_constant_is_looked_up_without_storing_what_is_found(
    name: str, question: str
) -> None:
    engine = EmbeddedEngine()
    kb = evermat.KnowledgeBase(PROGRAMS[name], engine=engine)
    kb.load({"r": EDGES, "e": EDGES})
    before = engine.store.relations["r"].count
    found = rows(kb.query(question))
    assert engine.store.relations["r"].count == before
    plain = evermat.KnowledgeBase(PROGRAMS[name], modules=False)
    plain.load({"r": EDGES, "e": EDGES})
    assert found == rows(plain.query(question))
