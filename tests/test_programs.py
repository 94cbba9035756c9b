"""Every folder of `tests/programs` is a test, on each engine and with each algorithm.

    program.dl            rules, and facts if they are few
    facts/<name>.csv      further facts
    expected.dl           every fact that must follow and is not given
    1-<what happens>/     an update; they are carried out by name
        delete.dl insert.dl remove_rules.dl add_rules.dl     those that are needed
        expected.dl       as above, after the update

With EVERMAT_WRITE_EXPECTED=1, what the oracle says is written to missing `expected.dl`
files, to be read and judged by a person before they are kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import oracle
from evermat.api import KnowledgeBase
from evermat.lang.parser import parse_program
from evermat.lang.syntax import Atom, Program, Term

if TYPE_CHECKING:
    from evermat.lang.syntax import Rule
    from oracle import Fact, Model

FOLDERS = [
    path.parent
    for path in sorted(Path(__file__).parent.joinpath("programs").glob("*/program.dl"))
]
ALGORITHMS = ["auto", "remat", "fp", "dred", "dred-c", "bf", "bf-c"]


def read(path: Path) -> Program:
    """A file of rules or facts, empty if it is not there."""
    if not path.exists():
        return Program()
    return parse_program(path.read_text(encoding="utf-8"), name=path.name)


def facts_in(program: Program) -> set[Fact]:
    return {
        (
            atom.predicate,
            tuple(a.constant for a in atom.arguments if isinstance(a, Term)),
        )
        for atom in program.facts
    }


def by_predicate(facts: set[Fact]) -> dict[str, list[tuple[object, ...]]]:
    rows: dict[str, list[tuple[object, ...]]] = {}
    for predicate, row in facts:
        rows.setdefault(predicate, []).append(row)
    return rows


@dataclass
class Story:
    """A knowledge base, and beside it what it must contain."""

    kb: KnowledgeBase
    rules: list[Rule]
    given: set[Fact] = field(default_factory=set)

    @classmethod
    def begin(cls, folder: Path, engine_name: str) -> Story:
        program = read(folder / "program.dl")
        # One of the programs spells the axioms of equality out itself.
        kb = KnowledgeBase(program, engine=engine_name, equality="off")
        kb.load({path.stem: path for path in folder.glob("facts/*.csv")})
        story = cls(kb, oracle.distinct(program.rules))
        story.given = story.stored("explicit")
        assert facts_in(program) <= story.given
        return story

    def update(self, folder: Path, algorithm: str) -> None:
        delete = facts_in(read(folder / "delete.dl"))
        insert = facts_in(read(folder / "insert.dl"))
        removed = read(folder / "remove_rules.dl").rules
        added = read(folder / "add_rules.dl").rules
        before = self.stored("all")
        change = self.kb.update(
            delete=by_predicate(delete),
            insert=by_predicate(insert),
            remove_rules=removed,
            add_rules=added,
            algorithm=algorithm,
        )
        self.given = (self.given - delete) | insert
        gone = oracle.distinct(removed)
        assert set(gone) <= set(self.rules)
        self.rules = [rule for rule in self.rules if rule not in gone]
        self.rules += oracle.distinct(added)
        after = self.stored("all")
        for predicate in self.kb.predicates:
            came = set(change.added(predicate).constants())
            left = set(change.removed(predicate).constants())
            assert came == {row for name, row in after - before if name == predicate}
            assert left == {row for name, row in before - after if name == predicate}

    def stored(self, sort: str) -> set[Fact]:
        return {
            (predicate, row)
            for predicate in self.kb.predicates
            for row in self.kb.facts(predicate, sort).constants()  # type: ignore[arg-type]
        }

    def check(self, folder: Path) -> None:
        """Compare with the file, and in every detail with the oracle."""
        model = oracle.materialise(self.rules, self.given)
        expected = folder / "expected.dl"
        if os.environ.get("EVERMAT_WRITE_EXPECTED") and not expected.exists():
            write_facts(expected, model.facts - self.given)
        assert self.stored("derived") == facts_in(read(expected)) - self.given
        assert self.stored("explicit") == self.given
        assert self.stored("all") == model.facts
        assert self.counters() == numbers(model)

    def counters(self) -> dict[Fact, tuple[str, str]]:
        found = {}
        for predicate, arity in self.kb.predicates.items():
            for row in self.kb.counters(predicate).constants():
                nonrecursive, recursive = row[arity:]
                found[predicate, row[:arity]] = (nonrecursive.text, recursive.text)
        return found


def numbers(model: Model) -> dict[Fact, tuple[str, str]]:
    return {
        fact: (str(model.nonrecursive[fact]), str(model.recursive[fact]))
        for fact in model.facts
    }


def write_facts(path: Path, facts: set[Fact]) -> None:
    atoms = [Atom(name, tuple(Term(each) for each in row)) for name, row in facts]
    lines = sorted(str(Program(facts=(atom,))).strip() for atom in atoms)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_program(folder: Path, algorithm: str, engine_name: str) -> None:
    story = Story.begin(folder, engine_name)
    story.check(folder)
    for step in sorted(path for path in folder.iterdir() if path.name[0].isdigit()):
        story.update(step, algorithm)
        story.check(step)


def test_there_are_programs() -> None:
    assert len(FOLDERS) >= 10
