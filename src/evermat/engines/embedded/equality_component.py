"""The component of equality as numbers for compiled code: rules and relations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evermat.algebra import Role
from evermat.engines.embedded.kernels.equality_search import (
    BACKWARD,
    CHECKING,
    CHECKING_ALONE,
    PROVING,
    RULES_SIZE,
)
from evermat.engines.embedded.kernels.equality_steps import (
    ADDRESSES,
    COLUMN_COUNT,
    COLUMNS,
    COMPONENT,
    IS_DERIVABLE,
    IS_READ_ALONE,
    RULES,
    TRAITS,
)
from evermat.engines.embedded.kernels.layout import address
from evermat.engines.embedded.triggers import Wires

if TYPE_CHECKING:
    from evermat.algebra import QuerySet
    from evermat.algebra.abilities import ComponentRules
    from evermat.engines.embedded.bytecode import Program
    from evermat.engines.embedded.kernels.layout import Numbers
    from evermat.engines.embedded.plan_cache import Plans


class ComponentWires(Wires):
    """The rules of the component of equality, and all relations, its own first.

    Attributes:
        rules: the rules.
        is_whole: whether all of them have programs, and speak of whole relations.
        traits: what is known of each relation.
    """

    def __init__(self, rules: ComponentRules, plans: Plans) -> None:
        super().__init__(plans)
        self.rules = rules
        by_slot = {
            CHECKING: rules.checking.delta,
            CHECKING_ALONE: rules.checking_alone.delta,
            BACKWARD: rules.checking.backward,
            PROVING: rules.proving.delta,
        }
        found = {slot: self._programs(each) for slot, each in by_slot.items()}
        self.is_whole = (
            all(
                region.names == region.relations
                for region in (rules.region, rules.derivable, rules.read_alone)
            )
            and None not in found.values()
        )
        if not self.is_whole:
            return
        relations = plans.relations
        region = sorted(rules.region.relations & relations.keys() - {rules.same})
        for name in (rules.same, *region):
            self._number(name, 0)
        self._component = len(self.names)
        for name in relations:
            if name not in self.numbers:
                self._number(name, 0)
        for slot, programs in found.items():
            for name, some in (programs or {}).items():
                self._connect(name, 2 * slot, some)
        self._lay_out(2 * len(by_slot), [0])
        self.traits: Numbers = np.array([self._traits(n) for n in self.names], np.int64)
        self._columns: dict[int, Numbers] = {}
        self._rules = self._described_rules()

    def is_apt(self) -> bool:
        """Whether relations are those of before, and about as large."""
        return len(self._plans.relations) == len(self.names) and super().is_apt()

    def _programs(self, queries: QuerySet) -> dict[str, list[Program]] | None:
        """The programs that changes of relations set off; None if one is missing."""
        found: dict[str, list[Program]] = {}
        for change, some in queries.by_change.items():
            programs = [self._plans.program(query) for query in some]
            if change is None or change[0] is not Role.CHANGED:
                return None
            known = [program for program in programs if program is not None]
            if len(known) < len(programs):
                return None
            found[change[1]] = known
        return found

    def _traits(self, name: str) -> int:
        rules = self.rules
        derivable = name in rules.derivable.relations
        read_alone = name in rules.read_alone.relations
        return IS_DERIVABLE * derivable + IS_READ_ALONE * read_alone

    def _described_rules(self) -> Numbers:
        relations, holders, starts, entries, programs, work, recursive = self.arrays
        numbers = np.empty(RULES_SIZE, np.int64)
        numbers[:] = (
            address(relations),
            address(holders),
            address(starts),
            starts.size,
            address(entries),
            len(entries),
            address(programs),
            len(programs),
            address(work),
            address(recursive),
        )
        return numbers

    def _columns_of(self, relations: int) -> Numbers:
        """Where names are looked up in the first relations."""
        if relations not in self._columns:
            lines = []
            for number, name in enumerate(self.names[:relations]):
                relation = self._plans.relations[name]
                for column in range(relation.arity):
                    index = relation.index((column,))
                    self._use(index, relation)
                    relation.describe(index)
                    lines.append((relation.address, index.address, number))
            self._columns[relations] = np.array(lines, np.int64).reshape(-1, 3)
        return self._columns[relations]

    def write(self, task: Numbers) -> None:
        """Tell a task where everything is."""
        task[ADDRESSES] = address(self.arrays[0])
        task[TRAITS] = address(self.traits)
        task[COMPONENT] = self._component
        task[RULES] = address(self._rules)
        self.look_in(task, self._component)

    def look_everywhere(self, task: Numbers) -> None:
        """Have names looked up in all relations."""
        self.look_in(task, len(self.names))

    def look_in(self, task: Numbers, relations: int) -> None:
        """Have names looked up in the first relations."""
        columns = self._columns_of(relations)
        task[COLUMNS], task[COLUMN_COUNT] = address(columns), len(columns)
