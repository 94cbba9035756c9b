"""A program with equality under representatives: its rules and its state.

Source: [motik2015equality], Sections 2 and 3.1: the r-materialisation (π, I).

Notation (left: the paper; right: the code)

    π; π'         `representatives` before the update, and after it
    I            `engine.materialised`   representatives only (*normal* facts)
    E            explicit facts, with the names that users inserted
    c ≈ c        `~same(c, c)`, only stored for cliques of at least two constants

Explicit facts of the engine are the facts that users inserted, and the rewritten facts
of these. Rewritten facts that were not inserted themselves are *implied*; they are
marked by the number 1 in `engine.recursive_counts`, which programs with equality do not
use otherwise. Inserted facts that are not normal are explicit, but do not hold in the
engine.

A program is divided in two:

- the *component* of equality: the rules that equality depends on. Every fact depends on
  equality, so these rules and equality are evaluated together, by merging constants;
- the other rules. They run when it is known which constants are equal, on facts of
  representatives only: they are a plain program, with negation and built-ins, that all
  algorithms for plain programs can maintain.

Constants in rules are replaced by their representatives like those in facts.

Rules with built-ins read the names of cliques as facts: `~name(r, n)` holds if `r` is
the representative of another constant `n` (`evermat.lang.equality`). These facts change
with the cliques, before the rules that equality does not depend on are maintained.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from evermat.algebra import (
    Apply,
    Column,
    Pattern,
    Query,
    QuerySet,
    Region,
    Require,
    Role,
    Views,
)
from evermat.algebra.compile import compile_rules, region_of
from evermat.lang.equality import (
    APART,
    SAME,
    refuse_aggregates,
    replace_constants,
    require_monotone,
    rule_constants,
    without_equality,
)
from evermat.lang.equality_builtins import NAME, reads_other_names
from evermat.lang.strata import rules_needed_for, shape_of, share_facts, stratify
from evermat.lang.syntax import TRIPLE, Atom, Call, Condition, Variable, substitute_rule
from evermat.maintenance.modules import find_closure_modules
from evermat.maintenance.rules import compile_plans, strata_of
from evermat.runtime import collection_paused
from evermat.values import Kind

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from evermat.algebra import Facts, SettledFacts
    from evermat.algebra.compile import RuleSet
    from evermat.algebra.engine import Engine
    from evermat.algebra.equality import Representatives
    from evermat.lang.strata import Shape
    from evermat.lang.syntax import Rule
    from evermat.maintenance.context import Run, Strata
    from evermat.maintenance.modules import ClosureModule
    from evermat.maintenance.rules import ModularPlan, RuleBook
    from evermat.values import Constant


LOST = "~lost"
"""Constants that are no longer representatives."""
MOVED = "~moved"
"""Constants whose representative changes in an update."""


_ALL_BUT_IRIS = frozenset(Kind) - {Kind.IRI, Kind.BLANK}
_ALL_BUT_NAMES = _ALL_BUT_IRIS - {Kind.STRING}


def values_among(relations: Collection[str]) -> frozenset[Kind]:
    """Return the kinds of constants that are never equal to each other.

    In programs without triples, strings are names, as in `same_as(ann, anna)`; in
    triples they are literals.
    """
    return _ALL_BUT_IRIS if TRIPLE in relations else _ALL_BUT_NAMES


class ExplicitFacts:
    """The facts that users made explicit, before and after an update."""

    def __init__(
        self, engine: Engine, deletions: SettledFacts, insertions: SettledFacts
    ) -> None:
        self.engine = engine
        self.deletions = deletions
        self.insertions = insertions

    def before(self, explicit: SettledFacts) -> SettledFacts:
        """Return those of explicit facts that were explicit before the update."""
        return self.engine.settle(explicit - self._implied(explicit))

    def kept(self, explicit: SettledFacts) -> SettledFacts:
        """Return those of explicit facts that were explicit before and still are."""
        implied = self._implied(explicit)
        return self.engine.settle(explicit - implied - self.deletions)

    def after(self, facts: SettledFacts) -> SettledFacts:
        """Return those of any facts that are explicit after the update."""
        engine = self.engine
        explicit = engine.settle(facts & engine.explicit)
        return engine.settle(self.kept(explicit) | (facts & self.insertions))

    def _implied(self, explicit: SettledFacts) -> SettledFacts:
        return self.engine.recursive_counts.positive(explicit)


def explicit_among(engine: Engine, facts: Facts) -> SettledFacts:
    """Return those of the facts that users inserted themselves."""
    explicit = engine.settle(facts & engine.explicit)
    if explicit.is_empty():
        return explicit
    return engine.settle(explicit - engine.recursive_counts.positive(explicit))


def normal_explicit(engine: Engine) -> Facts:
    """Return the representatives of explicit facts."""
    return engine.explicit & engine.materialised


# -------------------------------------------------------------------------------- rules


Values = dict["Constant", "Constant"]
"""Constants of rules that are not their own representatives, and these."""


def _always_local(rule: Rule, atom: Atom) -> bool:
    """Return true: the component searches for and proves all facts of bodies."""
    del rule, atom
    return True


class EqualityProgram:
    """Rules in which equality occurs in heads only, as `~same`."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(dict.fromkeys(rules))
        self._normal: dict[tuple[frozenset[object], frozenset[Rule]], NormalRules] = {}
        self._needed: dict[frozenset[object], frozenset[Rule]] = {}

    @classmethod
    def of(
        cls, book: RuleBook, arities: Mapping[str, int], values: frozenset[Kind]
    ) -> EqualityProgram:
        """Return the rules of a program.

        Args:
            book: the rules as written.
            arities: the predicates that are visible to users.
            values: the kinds of constants that are never equal to each other.

        Raises:
            EqualityError: a rule has no sensible meaning together with equality.
            StratificationError: a rule as written depends on its own negation.
        """
        written = tuple(book.normal.values())
        refuse_aggregates(written)
        if any(any(rule.negated_atoms()) for rule in written):
            # There are fewer dependencies without equality in bodies. A program that is
            # refused as a whole must not be accepted rule by rule.
            stratify(written)
        program = cls(without_equality(written, arities, values))
        program.needed({})
        return program

    @cached_property
    def rule_set(self) -> frozenset[Rule]:
        """The rules as a set."""
        return frozenset(self.rules)

    @cached_property
    def watching(self) -> dict[str, Rule]:
        """Relations of names that must not be read, and the rules that would read them.

        The rules are in the form in which they were written.
        """
        heads = ((rule.head.predicate, rule.written) for rule in self.rules)
        return {name: rule for name, rule in heads if name.startswith(APART)}

    def reads_names(self, chosen: frozenset[Rule]) -> bool:
        """Return whether some rules read names that are not representatives."""
        return not self._reading_names.isdisjoint(chosen)

    @cached_property
    def _reading_names(self) -> frozenset[Rule]:
        return frozenset(filter(reads_other_names, self.rules))

    @cached_property
    def constants(self) -> tuple[Constant, ...]:
        """The constants of the rules."""
        return tuple(self._mentioning)

    @cached_property
    def _mentioning(self) -> dict[Constant, list[Rule]]:
        """The rules that mention each constant."""
        found: dict[Constant, list[Rule]] = {}
        for rule in self.rules:
            for constant in rule_constants((rule,)):
                found.setdefault(constant, []).append(rule)
        return found

    def values(self, representatives: Representatives) -> Values:
        """Return the constants of the rules that have another representative."""
        return representatives.replaced(self.constants)

    def changed(self, values: Values) -> dict[Rule, Rule]:
        """Map the rules that mention replaced constants to their rewritten form."""
        rules = (rule for value in values for rule in self._mentioning[value])
        return {rule: replace_constants(rule, values) for rule in dict.fromkeys(rules)}

    def needed(self, values: Values) -> frozenset[Rule]:
        """Return the rules that equality depends on, after constants are replaced.

        Raises:
            EqualityError: more equality could undo a derivation by one of them.
        """
        key = frozenset(values.items())
        if key not in self._needed:
            changed = self.changed(values)
            if changed and not self._reaches_equality(changed):
                self._needed[key] = self.needed({})
            else:
                self._needed[key] = self._find_needed(changed)
        return self._needed[key]

    def _reaches_equality(self, changed: Mapping[Rule, Rule]) -> bool:
        """Return whether changed rules may make equality depend on more rules."""
        if not changed.keys().isdisjoint(self.needed({})):
            return True
        heads = {shape_of(rule.head) for rule in changed.values()}
        return any(
            share_facts(head, shape) for head in heads for shape in self._shapes_needed
        )

    @cached_property
    def _shapes_needed(self) -> tuple[Shape, ...]:
        return rules_needed_for(tuple(self.needed({})), SAME)[1]

    @collection_paused()
    def _find_needed(self, changed: Mapping[Rule, Rule]) -> frozenset[Rule]:
        normal = {rule: changed.get(rule, rule) for rule in self.rules}
        found, _ = rules_needed_for(tuple(normal.values()), SAME)
        chosen = frozenset(found)
        require_monotone(rule for rule in self.rules if normal[rule] in chosen)
        return frozenset(rule for rule in self.rules if normal[rule] in chosen)

    def under(self, values: Values, component: frozenset[Rule]) -> NormalRules:
        """Return the rules with constants replaced, divided by `component`."""
        key = (frozenset(values.items()), component)
        if key not in self._normal:
            if len(self._normal) > _MOST_KEPT:
                self._normal.clear()
            plain = self.under({}, component) if values else None
            self._normal[key] = NormalRules(self, values, component, plain)
        return self._normal[key]


_MOST_KEPT = 8
"""The most compiled forms of a program that are cached between updates."""


class NormalRules:
    """A program under representatives, compiled on demand.

    The parts not affected by replaced constants are shared with the `plain` program, in
    which all constants are their own representatives.
    """

    def __init__(
        self,
        program: EqualityProgram,
        values: Values,
        component: frozenset[Rule],
        plain: NormalRules | None,
    ) -> None:
        self.values = values
        self._program = program
        self._changed = program.changed(values)
        self._component = component
        if plain is not None and self._changed.keys().isdisjoint(component):
            self._alike: NormalRules | None = plain
        else:
            self._alike = None
        self._plain = plain
        self._sets: dict[tuple[str, frozenset[Rule]], RuleSet] = {}
        self._plans: dict[frozenset[Rule], tuple[ModularPlan, ...]] = {}
        self._closing: dict[frozenset[Rule], tuple[ModularPlan, ...]] = {}
        self._strata: dict[tuple[frozenset[Rule], frozenset[Rule]], Strata] = {}
        self._others: dict[frozenset[Rule], frozenset[Rule]] = {}

    @cached_property
    def region(self) -> Region:
        """The facts that the rules of the component read or derive."""
        if self._alike is not None:
            return self._alike.region
        return region_of(rules_needed_for(self._together, SAME)[1])

    @cached_property
    def derivable(self) -> Region:
        """The facts that the rules of the component can derive."""
        if self._alike is not None:
            return self._alike.derivable
        return region_of(dict.fromkeys(shape_of(rule.head) for rule in self._together))

    @cached_property
    def read_alone(self) -> Region:
        """The facts from each of which alone rules of the component can derive others.

        A functional property needs two explicit facts to make its values equal.
        """
        if self._alike is not None:
            return self._alike.read_alone
        rules = (rule for rule in self._together if not _takes_two(rule))
        atoms = (atom for rule in rules for atom in rule.positive_atoms())
        return region_of(dict.fromkeys(map(shape_of, atoms)))

    @cached_property
    def _together(self) -> tuple[Rule, ...]:
        return tuple(self._normal(self._component))

    def _normal(self, rules: frozenset[Rule]) -> Iterator[Rule]:
        """Yield the normal form of some of the rules, in the order of the program."""
        changed = self._changed
        return (changed.get(r, r) for r in self._program.rules if r in rules)

    def changed_since(self, before: NormalRules) -> frozenset[Rule]:
        """Return the rules of the component that have other constants than before.

        Instances of all other rules over the same facts are unchanged.
        """
        old, new = before._changed, self._changed
        return frozenset(
            rule
            for rule in old.keys() | new.keys()
            if rule in self._component and old.get(rule, rule) != new.get(rule, rule)
        )

    def checking(self, chosen: frozenset[Rule]) -> RuleSet:
        """Return rules of the component over facts with all equal constants merged.

        Equality derives only `~same(c, c)` there, which is stored for cliques of at
        least two constants and represents all their equalities.
        """
        return self._compiled("checking", chosen)

    def checking_alone(self, chosen: frozenset[Rule]) -> RuleSet:
        """Return those of them that can apply to a fact with a single preimage."""
        return self._compiled("checking alone", chosen)

    def proving(self, chosen: frozenset[Rule]) -> RuleSet:
        """Return rules of the component that may find new equalities."""
        return self._compiled("proving", chosen)

    def _compiled(self, purpose: str, chosen: frozenset[Rule]) -> RuleSet:
        if self._alike is not None:
            return self._alike._compiled(purpose, chosen)  # noqa: SLF001  of this class
        key = (purpose, chosen)
        if key not in self._sets:
            rules = _FORMS[purpose](self._normal(self._component & chosen))
            self._sets[key] = compile_rules(dict.fromkeys(rules), _always_local)
        return self._sets[key]

    def others(self, chosen: frozenset[Rule]) -> frozenset[Rule]:
        """Return the rules outside of the component."""
        if chosen not in self._others:
            self._others[chosen] = self._work_out_others(chosen)
        return self._others[chosen]

    def _work_out_others(self, chosen: frozenset[Rule]) -> frozenset[Rule]:
        if self._plain is None:
            return chosen - self._component
        plain = self._plain.others(chosen)
        changed = self._changed
        new = (changed[rule] for rule in changed if rule in plain)
        return (plain - changed.keys()).union(new)

    def plans(self, chosen: frozenset[Rule]) -> tuple[ModularPlan, ...]:
        """Return the strata of the rules outside of the component, for updates."""
        if chosen not in self._plans:
            plans = self._closing.get(chosen)
            if plans is None or any(plan.modules for plan in plans):
                plans = compile_plans(self._ordered(chosen))
            self._plans[chosen] = plans
        return self._plans[chosen]

    def closing_plans(self, chosen: frozenset[Rule]) -> tuple[ModularPlan, ...]:
        """Return the same for materialisation, where closures evaluate some rules."""
        if chosen not in self._closing:
            plans = compile_plans(self._ordered(chosen), _find_closures)
            self._closing[chosen] = plans
        return self._closing[chosen]

    def _ordered(self, chosen: frozenset[Rule]) -> tuple[Rule, ...]:
        return tuple(dict.fromkeys(self._normal(chosen - self._component)))

    def strata(self, chosen: frozenset[Rule], new: frozenset[Rule]) -> Strata:
        """Return the same for an update that adds some of the rules."""
        key = (chosen, new)
        if key not in self._strata:
            self._strata[key] = strata_of(self.plans(chosen), new)
        return self._strata[key]


def _find_closures(
    rules: Sequence[Rule], is_local: Callable[[Rule, Atom], bool]
) -> tuple[ClosureModule, ...]:
    """Return the closures of a stratum; two of them may have the same facts."""
    return tuple(find_closure_modules(rules, is_local))


def _on_cliques(rule: Rule) -> Rule:
    """Replace an equality of representatives by the node of its clique.

    Both sides are the same then, and so may be atoms of the body.
    """
    if rule.head.predicate != SAME:
        return rule
    rule = _with_equal_sides(rule)
    first = rule.head.arguments[0]
    return replace(rule, body=(Atom(SAME, (first, first)), *rule.body))


def _with_equal_sides(rule: Rule) -> Rule:
    """Restrict a rule to instances with equal sides, if atoms bind both."""
    one, other = rule.head.arguments
    bound = {each for atom in rule.positive_atoms() for each in atom.arguments}
    if not (isinstance(other, Variable) and {one, other} <= bound):
        return rule
    same = substitute_rule(rule, {other.name: one})
    return replace(same, body=tuple(dict.fromkeys(same.body)))


def _takes_two(rule: Rule) -> bool:
    """Return whether a rule derives no more than c ≈ c from a single explicit fact.

    This is the case if all atoms match the same rewritten fact, and both sides occur at
    the same position of atoms: their names there were already proved to be equal to
    that of the explicit fact.
    """
    if rule.head.predicate != SAME:
        return False
    one, other = rule.head.arguments
    if not (isinstance(one, Variable) and isinstance(other, Variable)):
        return False
    if len(set(_with_equal_sides(rule).positive_atoms())) != 1:
        return False
    places = zip(*(atom.arguments for atom in rule.positive_atoms()), strict=True)
    return any(one in place and other in place for place in places)


def _between_different(rule: Rule) -> Rule:
    """Exclude instances that derive only that a constant is equal to itself."""
    if rule.head.predicate != SAME:
        return rule
    return replace(rule, body=(*rule.body, Condition(Call("!=", rule.head.arguments))))


_FORMS: Mapping[str, Callable[[Iterable[Rule]], Iterator[Rule]]] = {
    "checking": lambda rules: map(_on_cliques, rules),
    "checking alone": lambda rules: (
        _on_cliques(rule) for rule in rules if not _takes_two(rule)
    ),
    "proving": lambda rules: map(_between_different, rules),
}


# -------------------------------------------------------------------------------- names


_PAIR = (Column(0), Column(1))
_NAMES = QuerySet(
    (
        Query(
            head=Pattern(NAME, _PAIR),
            positive=(
                Pattern(SAME, _PAIR, Role.CHANGED),
                Pattern(MOVED, (Column(1),)),
            ),
            computations=(Require(Apply("!=", _PAIR)),),
            column_count=2,
            label="other names of representatives",
        ),
    )
)
_NODES = QuerySet(
    (
        Query(
            head=Pattern(SAME, (Column(0), Column(0))),
            positive=(Pattern(MOVED, (Column(0),), Role.CHANGED),),
            column_count=1,
            label="cliques of names",
        ),
    )
)


def all_names(engine: Engine, representatives: Representatives) -> SettledFacts:
    """Return the names of all cliques; in a transaction."""
    moved = engine.moved(engine.representatives(), representatives, MOVED)
    return names_of(engine, moved, representatives)


def names_of(
    engine: Engine, moved: SettledFacts, representatives: Representatives
) -> SettledFacts:
    """Return the representatives of constants that are not their own.

    Args:
        engine: in a transaction.
        moved: the constants, as facts of `~moved`.
        representatives: the cliques.
    """
    engine.declare(NAME, 2)
    engine.declare(SAME, 2)
    if moved.is_empty():
        return moved
    nodes = engine.derive(_NODES, Views(moved, moved, moved))
    nodes = engine.rewrite(nodes, representatives)
    pairs = engine.members(nodes, representatives)
    return engine.derive(_NAMES, Views(moved, moved, pairs))


# ------------------------------------------------------------------ an update


EQUALITIES = Region(frozenset({SAME}))


class LargerComponent(Exception):  # noqa: N818  an internal signal
    """Equality turned out to depend on more rules than assumed by an update."""

    def __init__(self, component: frozenset[Rule]) -> None:
        super().__init__()
        self.component = component


@dataclass(eq=False)
class Setting:
    """The common input of both phases of an update.

    Attributes:
        program: the rules of the program before and after, together.
        component: the rules that equality depends on.
        values: the kinds of constants that are never equal.
        explicit: the facts that users made explicit.
        tracing: whether to explain a contradiction, which needs copies of cliques.
    """

    engine: Engine
    run: Run
    program: EqualityProgram
    component: frozenset[Rule]
    values: frozenset[Kind]
    explicit: ExplicitFacts
    tracing: bool = False

    def rules(self, representatives: Representatives) -> NormalRules:
        """Return the rules under representatives."""
        values = self.program.values(representatives)
        if values:
            needed = self.program.needed(values)
            if not needed <= self.component:
                raise LargerComponent(needed | self.component)
        return self.program.under(values, self.component)
