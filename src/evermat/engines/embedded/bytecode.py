"""Compiles plans to bytecode for the interpreter that runs small queries.

A program is an array of numbers; `kernels.instructions` documents the format. Every
variable and every constant of the query has a register, so instructions need not
distinguish them. Queries with computations, or with a product of bindings and many
rows, have no program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import Apply, Column, Pattern, Role
from evermat.engines.embedded.index import SPREAD, WIDEST_EXACT_KEY
from evermat.engines.embedded.kernels.instructions import (
    AGREE,
    BY_HALF,
    BY_KEY,
    DIFFER,
    EXCLUDE,
    FIRST_OFFSET,
    FOUND_BY,
    HEAD,
    IN_KEY,
    MOST_SLOTS,
    MOST_STEPS,
    REQUIRE,
    SCAN,
)
from evermat.engines.embedded.kernels.layout import address
from evermat.engines.embedded.planner import (
    FEW_INLINE_ROWS,
    Check,
    Plan,
    Probe,
    ProbeInline,
    Scan,
    Test,
)
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evermat.algebra import Operand, Query, Require
    from evermat.engines.embedded.batch import InlineTables
    from evermat.engines.embedded.index import Index
    from evermat.engines.embedded.planner import Step
    from evermat.engines.embedded.relation import Relation

ROLES = {
    (Role.ALL, False): 1,
    (Role.UNCHANGED, False): 2,
    (Role.ABSENT, False): 4,
    (Role.ABSENT_BEFORE, False): 8,
    (Role.ALL, True): 16,
    (Role.UNCHANGED, True): 32,
}
"""A bit for each role, and for whether the pattern is local."""

MANY_SEARCHES = 64
"""Number of look-ups after which they are reported to the indexes."""

EVERYBODY = 0
"""Represents rows that are visible to all roles."""

START_CONSTANT = boolean_constant(value=True)
START = Scan(Pattern("~start", (START_CONSTANT,)))
"""The pattern that the one row of a relation matches: what queries begin with that are
about all facts, not about a change."""

COMPARISONS = {"=": AGREE, "!=": DIFFER}
"""Constants are equal if their ids are."""


class Program:
    """A plan compiled to bytecode.

    Attributes:
        label: the name of the query.
        target: the relation of its heads.
        arity: the number of its columns.
        address: the address of the bytecode.
        reads_unchanged: whether a pattern reads facts that did not change.
        uses: the indexes that are read, and their relations.
    """

    __slots__ = (
        "_numbers",
        "_searches",
        "address",
        "arity",
        "label",
        "plan",
        "reads_unchanged",
        "target",
        "uses",
    )

    def __init__(
        self, plan: Plan, relations: Mapping[str, Relation], inline: InlineTables
    ) -> None:
        writer = _Writer(plan.query, relations, inline)
        self._numbers = writer.numbers(plan)
        self.uses = tuple(writer.uses.items())
        self._searches = 0
        self.plan = plan
        self.label = plan.query.label
        self.target = plan.query.head.relation
        self.arity = len(plan.query.head.operands)
        self.address = address(self._numbers)
        self.reads_unchanged = any(
            pattern.role in {Role.UNCHANGED, Role.ABSENT_BEFORE}
            for pattern in (*plan.query.positive, *plan.query.negative)
        )

    def bring_up_to_date(self) -> None:
        """Bring the layouts of all relations and indexes up to date."""
        for index, relation in self.uses:
            if index.described != relation.count:
                relation.describe(index)

    def note_searches(self, times: int) -> None:
        """Record the approximate number of look-ups of a run."""
        self._searches += times
        if self._searches > MANY_SEARCHES:
            for index, _ in self.uses:
                index.note_searches(self._searches)
            self._searches = 0


def can_be_programmed(plan: Plan) -> bool:
    """Return whether a plan can be compiled to bytecode."""
    query, steps = plan.query, plan.steps
    if not steps or not isinstance(steps[0], Scan) or query.changed is None:
        return False
    return _fits(query, steps)


def can_begin_alone(plan: Plan) -> bool:
    """Return whether a program can join all patterns, starting from an empty row."""
    return _fits(plan.query, [START, *plan.steps])


def begun_alone(plan: Plan) -> Plan:
    """Return the plan with an empty row in the place of a change."""
    return Plan(plan.query, [START, *plan.steps], plan.sizes)


def _fits(query: Query, steps: Sequence[Step]) -> bool:
    if query.column_count + _constant_count(query) > MOST_SLOTS:
        return False
    return len(steps) <= MOST_STEPS and all(map(_is_simple, steps[1:]))


def _constant_count(query: Query) -> int:
    """Return an upper bound for the number of constants in a query."""
    patterns = (query.head, *query.positive, *query.negative)
    compared = 2 * len(query.computations)
    return compared + sum(len(pattern.operands) for pattern in patterns)


def _is_simple(step: Step) -> bool:
    match step:
        case Probe(solution=None) | Test():
            return True
        case ProbeInline(inline=inline, key=key):
            return bool(key) or len(inline.rows) <= FEW_INLINE_ROWS
        case Check(require=require):
            return _compared(require) is not None
        case _:
            return False


def _compared(require: Require) -> tuple[Operand, ...] | None:
    """Return the columns and constants of a plain comparison, or None."""
    function, sides = require.expression.function, require.expression.arguments
    operands = tuple(side for side in sides if not isinstance(side, Apply))
    is_simple = function in COMPARISONS and len(operands) == len(sides)
    return operands if is_simple else None


class _Writer:
    """Writes the bytecode of one query."""

    def __init__(
        self, query: Query, relations: Mapping[str, Relation], inline: InlineTables
    ) -> None:
        self.query = query
        self.relations = relations
        self.inline = inline
        self.constants: list[int] = []
        self.uses: dict[Index, Relation] = {}

    def numbers(self, plan: Plan) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return the whole program."""
        records = [self._record(step) for step in plan.steps]
        records.append(self._head(plan.steps))
        constants = [
            number
            for at, id_ in enumerate(self.constants)
            for number in (self.query.column_count + at, id_)
        ]
        offset = FIRST_OFFSET + len(records) + len(constants)
        offsets = []
        for record in records:
            offsets.append(offset)
            offset += len(record)
        slots = self.query.column_count + len(self.constants)
        sizes = [len(plan.steps) - 1, slots, len(self.constants)]
        parts = [sizes, offsets, constants]
        return np.array([n for part in (*parts, *records) for n in part], np.int64)

    def _record(self, step: Step) -> list[int]:
        match step:
            case Scan(pattern=pattern):
                relation = self.relations[pattern.relation]
                self._use(relation, relation.primary, 1)
                slots = self._slots(pattern.operands)
                return _numbers(
                    (relation, relation.primary, EVERYBODY, SCAN),
                    [],
                    *self._free(pattern.operands, slots, (), step.keep, IN_KEY),
                )
            case Probe(pattern=pattern, key=key):
                relation = self.relations[pattern.relation]
                slots = self._slots(pattern.operands)
                return self._probe(
                    relation, pattern.operands, slots, key, _role(pattern), step
                )
            case ProbeInline(inline=inline, key=key):
                relation = self.inline.relation(inline)
                slots = [column.index for column in inline.columns]
                if len(key) == len(slots):
                    return self._test(relation, slots, EVERYBODY, REQUIRE)
                return self._probe(
                    relation, inline.columns, slots, key, EVERYBODY, step
                )
            case Test(pattern=pattern, present=present):
                relation = self.relations[pattern.relation]
                slots = self._slots(pattern.operands)
                kind = REQUIRE if present else EXCLUDE
                return self._test(relation, slots, _role(pattern), kind)
            case Check(require=require):
                # No relation is read, but the instruction has a field for one.
                relation = self.relations[self.query.head.relation]
                slots = self._slots(_compared(require) or ())
                kind = COMPARISONS[require.expression.function]
                what = (relation, relation.primary, EVERYBODY, kind)
                return _numbers(what, slots, [], [])
            case _:
                raise TypeError(step)

    def _probe(
        self,
        relation: Relation,
        operands: Sequence[Operand],
        slots: Sequence[int],
        key: tuple[int, ...],
        seen_by: int,
        step: Step,
    ) -> list[int]:
        index = relation.index(key)
        self._use(relation, index, SPREAD)
        by_half = len(key) == 1
        second = index.columns[1] if by_half else IN_KEY
        binds, checks = self._free(operands, slots, key, step.keep, second)
        if len(key) > WIDEST_EXACT_KEY:
            checks += [(at, slots[at]) for at in key]
        return _numbers(
            (relation, index, seen_by, BY_HALF if by_half else BY_KEY),
            [slots[at] for at in index.columns[: len(key)]],
            binds,
            checks,
        )

    def _test(
        self, relation: Relation, slots: list[int], seen_by: int, kind: int
    ) -> list[int]:
        # Hashes are uniform, so few buckets are enough.
        is_hash = relation.arity > WIDEST_EXACT_KEY
        self._use(relation, relation.primary, 1 if is_hash else SPREAD)
        return _numbers((relation, relation.primary, seen_by, kind), slots, [], [])

    def _head(self, steps: Sequence[Step]) -> list[int]:
        head = self.query.head
        relation = self.relations[head.relation]
        # Facts are looked up by all of their columns, so few buckets are enough, unless
        # there is only one column.
        self._use(relation, relation.primary, SPREAD if relation.arity == 1 else 1)
        slots = self._slots(head.operands)
        what = relation, relation.primary, EVERYBODY, HEAD
        record = _numbers(what, slots, [], [])
        record[FOUND_BY] = _finder(head, steps)
        return record

    def _free(
        self,
        operands: Sequence[Operand],
        slots: Sequence[int],
        key: tuple[int, ...],
        keep: frozenset[int],
        second: int,
    ) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the values to take from a row and those to check, besides its key.

        Args:
            operands: the operand at each position.
            slots: the register of each operand.
            key: the positions that are looked up.
            keep: the columns that are needed later.
            second: the position that can be read from the key itself.
        """
        binds: dict[int, int] = {}
        checks = []
        for at, (operand, slot) in enumerate(zip(operands, slots, strict=True)):
            if at in key:
                continue
            if isinstance(operand, Column) and slot not in binds:
                binds[slot] = at
            else:
                checks.append((at, slot))
        needed = keep | {slot for _, slot in checks}
        taken = [
            (IN_KEY if at == second else at, slot)
            for slot, at in binds.items()
            if slot in needed
        ]
        return taken, checks

    def _use(self, relation: Relation, index: Index, spread: int) -> None:
        self.uses[index] = relation
        index.spread = max(index.spread, spread)

    def _slots(self, operands: Sequence[Operand]) -> list[int]:
        return [
            operand.index
            if isinstance(operand, Column)
            else self._constant(self.inline.dictionary.id_of(operand))
            for operand in operands
        ]

    def _constant(self, id_: int) -> int:
        self.constants.append(id_)
        return self.query.column_count + len(self.constants) - 1


def _finder(head: Pattern, steps: Sequence[Step]) -> int:
    """Return the step after the first that finds the head fact itself, or 0."""
    for number, step in enumerate(steps[1:], 1):
        match step:
            case Probe(pattern=pattern) | Test(pattern=pattern, present=True):
                there = pattern.relation, pattern.operands
                if there == (head.relation, head.operands):
                    return number
    return 0


def _role(pattern: Pattern) -> int:
    is_positive = pattern.role in {Role.ALL, Role.UNCHANGED}
    return ROLES[pattern.role, is_positive and pattern.local]


def _numbers(
    what: tuple[Relation, Index, int, int],
    key: list[int],
    binds: list[tuple[int, int]],
    checks: list[tuple[int, int]],
) -> list[int]:
    relation, index, seen_by, kind = what
    pairs = [number for pair in (*binds, *checks) for number in pair]
    return [
        relation.address,
        index.address,
        seen_by,
        kind,
        len(key),
        len(binds),
        len(checks),
        *key,
        *pairs,
    ]


def fact_line(relation: Relation, count: int, first: int) -> tuple[int, ...]:
    """Return the instruction for looking up `count` facts, with ids from `first` on."""
    index = relation.primary
    relation.require_layout()
    index.note_searches(count)
    record = relation.address, index.address, EVERYBODY, HEAD, relation.arity, 0, 0
    return (*record, count, first)
