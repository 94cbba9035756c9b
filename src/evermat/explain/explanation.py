"""Explanations: why a fact holds, for people to read and for programs to use; plans.

An explanation is a proof: the fact, the rule that derives it with the values of its
variables, and in the same way every premise, down to explicit facts. A fact that is
needed more than once is explained once.

`plans_text` describes how the rules of a knowledge base are run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING

from evermat.algebra import Views
from evermat.algebra.compile import RuleSet
from evermat.functions import FunctionError, evaluate
from evermat.lang.printer import Printer
from evermat.lang.syntax import Aggregation, Atom, Call, Condition, Negation, Term
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from evermat.algebra import Engine
    from evermat.algebra.compile import StratumPlan
    from evermat.lang.normalise import Computation
    from evermat.lang.syntax import BodyElement, Rule
    from evermat.maintenance.modules import Module
    from evermat.maintenance.proof import Fact
    from evermat.values import Constant, Value


_TRUE = boolean_constant(value=True)


def rule_place(rule: Rule) -> str | None:
    """Return the file and line of a rule, if known."""
    span = rule.span
    if span is None:
        return None
    name = span.source.name
    is_file = not name.startswith("<")
    return f"{name}:{span.line}" if is_file else f"line {span.line}"


def difference(wanted: Constant, found: Constant) -> str | None:
    """Return by how much a number is above or below another; None for other kinds."""
    try:
        more = evaluate("-", found, wanted)
        size = evaluate("abs", more)
    except FunctionError:
        return None
    return f"{size} {'too little' if more != size else 'too much'}"


def _short_of(failed: BodyElement) -> str:
    """Return by how much a comparison of numbers fails."""
    match failed:
        case Condition(
            expression=Call(
                function="<" | "<=" | ">" | ">=" as sign,
                arguments=(Term(constant=left), Term(constant=right)),
            )
        ):
            amount = difference(right, left)
            if amount is not None and not amount.startswith("0 "):
                return f": {amount}"
            del sign
    return ""


@dataclass(frozen=True, eq=False)
class Derivation:
    """A rule with values for its variables.

    Attributes:
        rule: as written, with one head.
        binding: the values of its variables.
        premises: the facts in its body.
        absent: the facts that must not hold; a variable or `_` matches any value.
        computations: conditions that are true, and expressions with their values.
        is_axiom: whether the rule is an axiom of equality, not written by a user.
        size: for the result of an aggregate, the number of members of its group;
            premises are some of them, or the one that has the result.
        is_member: whether the derived tuple is a member of an aggregate of the rule.
        empty: the aggregates whose groups have no members, so that their value is 0.
    """

    rule: Rule
    binding: Mapping[str, Constant]
    premises: tuple[Fact, ...]
    absent: tuple[Atom, ...] = ()
    computations: tuple[Computation, ...] = ()
    is_axiom: bool = False
    size: int | None = None
    is_member: bool = False
    empty: tuple[Aggregation, ...] = ()

    @property
    def place(self) -> str | None:
        """The file and line of the rule, if known."""
        return "equality" if self.is_axiom else rule_place(self.rule)

    @property
    def values(self) -> dict[str, Value]:
        """The values of the variables, as Python values."""
        return {name: value.value for name, value in self.binding.items()}

    def __repr__(self) -> str:
        return f"<Derivation by {self.rule} with {_binding_text(self.binding)}>"


@dataclass(frozen=True, eq=False)
class Failure:
    """A rule that could derive a fact, and the part of its body that fails.

    Attributes:
        rule: as written, with one head.
        binding: values of variables: those of the fact, and of the first match of the
            parts of the body before the failed one.
        matches: the number of matches of these parts.
        failed: the part of the body that fails for all of them, with values.
        remark: a text to show instead of it.
    """

    rule: Rule
    binding: Mapping[str, Constant]
    matches: int
    failed: BodyElement
    remark: str | None = None

    def __repr__(self) -> str:
        return f"<Failure of {self.rule} at {Printer({}).element(self.failed)}>"


@dataclass(frozen=True, eq=False)
class Explanation:
    """The proof of a fact, or the reasons why it does not hold.

    An explanation is true if the fact holds; printed, it shows the whole proof.

    Attributes:
        fact: the fact to explain.
        holds: whether it holds.
        derivations: the rule instances that derive the fact in one step, if they were
            requested.
        derivation_count: their number, shown or not; None if they were not requested.
        failures: for a fact that does not hold, the rules that could derive it.
    """

    fact: Fact
    holds: bool
    steps: Mapping[Fact, Derivation | None] = field(default_factory=dict, repr=False)
    heights: Mapping[Fact, int] = field(default_factory=dict, repr=False)
    derivations: tuple[Derivation, ...] = ()
    derivation_count: int | None = None
    failures: tuple[Failure, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict, repr=False)
    texts: Mapping[Fact, str] = field(default_factory=dict, repr=False)

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        fact = self.fact_text(self.fact)
        if not self.holds:
            return f"<Explanation {fact} does not hold>"
        how = (
            "is explicit"
            if self.is_explicit
            else f"has a proof of height {self.height}"
        )
        return f"<Explanation {fact} {how}>"

    def _repr_html_(self) -> str:
        """Return the proof as a drawing and as text, for notebooks."""
        from evermat.explain.drawing import proof_svg  # noqa: PLC0415  rarely needed

        text = f"<details><summary>As text</summary><pre>{escape(str(self))}</pre>"
        return f"{proof_svg(self)}{text}</details>"

    # -- parts

    @property
    def predicate(self) -> str:
        """The predicate of the fact."""
        return self.fact.relation

    @property
    def row(self) -> tuple[Value, ...]:
        """The arguments of the fact, as Python values."""
        return tuple(each.value for each in self.fact.row)

    @property
    def is_explicit(self) -> bool:
        """Whether the fact is explicit, and so needs no rule."""
        return self.holds and self.steps[self.fact] is None

    @property
    def derivation(self) -> Derivation | None:
        """The rule and its values; None if the fact is explicit or does not hold."""
        return self.steps.get(self.fact)

    @property
    def premises(self) -> tuple[Explanation, ...]:
        """The explanations of the premises."""
        derivation = self.derivation
        facts = () if derivation is None else derivation.premises
        return tuple(
            replace(self, fact=fact, derivations=(), derivation_count=None)
            for fact in facts
        )

    @property
    def height(self) -> int:
        """The length of the longest path from the fact down to an explicit one."""
        return self.heights.get(self.fact, 0)

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All facts of the proof, each once, premises after their conclusions."""
        return tuple(dict.fromkeys(fact for fact, *_ in self.walk()))

    # -- as text

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        if not self.holds:
            yield f"{self.fact_text(self.fact)} does not hold"
            for failure in self.failures:
                first, *others = self.failure_remarks(failure)
                yield f"{_bullet(1)}{first}"
                yield from _indented(others, 1)
        for fact, depth, is_again in self.walk():
            yield f"{_bullet(depth)}{self.fact_text(fact)}{self.note(fact, is_again)}"
            derivation = self.steps[fact]
            if derivation is not None and not is_again:
                yield from _indented(self.remarks(derivation), depth)
        if self.derivation_count is not None:
            yield self.derivation_title
            for derivation in self.derivations:
                first, *others = self.remarks(derivation)
                yield f"{_bullet(1)}{first}"
                yield from _indented(others, 1)
                for premise in derivation.premises:
                    yield f"{_bullet(2)}{self.fact_text(premise)}"

    @property
    def derivation_title(self) -> str:
        """Return the number of derivations, and of those that are shown."""
        shown, total = len(self.derivations), self.derivation_count or 0
        rest = "" if shown == total else f", {shown:,} of them shown"
        noun = "derivation" if total == 1 else "derivations"
        return f"{total:,} {noun} in one step{rest}"

    def note(self, fact: Fact, is_again: bool) -> str:  # noqa: FBT001  the form of `walk`
        """Return the note after a fact that needs no derivation."""
        if self.steps[fact] is None:
            return "   explicit"
        return "   see above" if is_again else ""

    def remarks(self, derivation: Derivation) -> Iterator[str]:
        """Yield the remarks on a derivation, besides its premises."""
        printer = self._printer
        if derivation.is_member:
            return
        if derivation.size is not None:
            yield self._members_text(derivation)
            return
        place = "" if derivation.place is None else f"   ({_short(derivation.place)})"
        yield f"by {printer.rule(derivation.rule)}{place}"
        if derivation.binding:
            yield f"with {_binding_text(derivation.binding, printer)}"
        for computation in derivation.computations:
            yield f"where {self.computation_text(computation)}"
        for atom in derivation.absent:
            yield f"there is no {printer.atom(atom)}"
        for each in derivation.empty:
            yield f"{printer.aggregate(each)} = 0, of no members"

    def failure_remarks(self, failure: Failure) -> Iterator[str]:
        """Yield the remarks on a rule that does not derive the fact."""
        place = rule_place(failure.rule)
        where = "" if place is None else f"   ({_short(place)})"
        yield f"not by {self._printer.rule(failure.rule)}{where}"
        if failure.binding:
            count = failure.matches
            others = f", the first of {count:,} matches" if count > 1 else ""
            yield f"with {_binding_text(failure.binding, self._printer)}{others}"
        yield failure.remark or self._failed_text(failure.failed)

    def _failed_text(self, failed: BodyElement) -> str:
        printer = self._printer
        match failed:
            case Atom():
                return f"there is no {printer.atom(failed)}"
            case Negation(atom=atom):
                return f"there is {printer.atom(atom)}"
            case _:
                return f"it is not so that {printer.element(failed)}{_short_of(failed)}"

    def _members_text(self, derivation: Derivation) -> str:
        """Return the number of members of a group, and of those that are shown."""
        size, shown = derivation.size or 0, len(derivation.premises)
        members = "member" if size == 1 else "members"
        if shown == size:
            return f"of {size:,} {members}"
        return f"of {size:,} {members}, {shown:,} of them shown"

    def fact_text(self, fact: Fact) -> str:
        """Return a fact in the syntax of rules."""
        if fact in self.texts:
            return self.texts[fact]
        return self._printer.atom(Atom(fact.relation, tuple(map(Term, fact.row))))

    def computation_text(self, computation: Computation) -> str:
        """Return a computation with its result, unless that is obvious."""
        text = self._printer.expression(computation.filled)
        if computation.result == _TRUE:
            return text
        return f"{text} = {self._printer.constant(computation.result)}"

    @cached_property
    def _printer(self) -> Printer:
        return Printer(self.prefixes)

    def walk(self) -> Iterator[tuple[Fact, int, bool]]:
        """Yield the proof from the top down: facts, depths, and whether seen before."""
        seen: set[Fact] = set()
        waiting = [(self.fact, 0)] if self.holds else []
        while waiting:
            fact, depth = waiting.pop()
            yield fact, depth, fact in seen
            derivation = self.steps[fact]
            if fact in seen or derivation is None:
                continue
            seen.add(fact)
            waiting += [(each, depth + 1) for each in reversed(derivation.premises)]

    # -- for programs

    def to_dict(self) -> dict[str, object]:
        """Return plain data, as for JSON.

        Facts are numbered; number 0 is the explained fact, and premises are referred to
        by number. Constants are written as in rules.
        """
        facts = self.facts
        numbers = {fact: number for number, fact in enumerate(facts)}
        document: dict[str, object] = {
            "fact": self.fact_text(self.fact),
            "holds": self.holds,
        }
        if self.holds:
            document["height"] = self.height
            document["steps"] = [self._step(fact, numbers) for fact in facts]
        if self.failures:
            document["failures"] = [self._failure_dict(each) for each in self.failures]
        if self.derivation_count is not None:
            document["derivation_count"] = self.derivation_count
            document["derivations"] = [
                self._derivation_dict(each) for each in self.derivations
            ]
        return document

    def _step(self, fact: Fact, numbers: Mapping[Fact, int]) -> dict[str, object]:
        derivation = self.steps[fact]
        step: dict[str, object] = {
            "number": numbers[fact],
            "fact": self.fact_text(fact),
            "explicit": derivation is None,
        }
        if derivation is not None:
            step |= self._derivation_dict(derivation)
            step["premises"] = [numbers[each] for each in derivation.premises]
        return step

    def _failure_dict(self, failure: Failure) -> dict[str, object]:
        constant = self._printer.constant
        return {
            "rule": self._printer.rule(failure.rule),
            "place": rule_place(failure.rule),
            "binding": {n: constant(value) for n, value in failure.binding.items()},
            "matches": failure.matches,
            "failed": failure.remark or self._failed_text(failure.failed),
        }

    def _derivation_dict(self, derivation: Derivation) -> dict[str, object]:
        printer = self._printer
        return {
            "rule": printer.rule(derivation.rule),
            "place": derivation.place,
            "binding": {
                name: printer.constant(value)
                for name, value in derivation.binding.items()
            },
            "premises": [self.fact_text(each) for each in derivation.premises],
            "computations": [
                self.computation_text(each) for each in derivation.computations
            ],
            "absent": [
                *map(printer.atom, derivation.absent),
                *map(printer.aggregate, derivation.empty),
            ],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """Return `to_dict` as a JSON document."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    def to_dot(self) -> str:
        """Return the proof as a graph for Graphviz: facts are boxes, steps are dots.

        Explicit facts are filled, and arrows lead from premises to conclusions.
        """
        facts = self.facts
        numbers = {fact: number for number, fact in enumerate(facts)}
        lines = ["digraph proof {", "  rankdir=BT;", '  node [fontname="monospace"];']
        if not self.holds:
            text = f"{self.fact_text(self.fact)} does not hold"
            lines.append(f"  f0 [shape=box, style=dashed, label={_dot_text(text)}];")
        for fact, number in numbers.items():
            derivation = self.steps[fact]
            style = ", style=filled, fillcolor=lightgrey" if derivation is None else ""
            label = _dot_text(self.fact_text(fact))
            lines.append(f"  f{number} [shape=box{style}, label={label}];")
            if derivation is not None:
                tooltip = _dot_text("\n".join(self.remarks(derivation)))
                label = _dot_text("\n".join(self._side_conditions(derivation)))
                lines.append(
                    f"  s{number} [shape=point, tooltip={tooltip}, xlabel={label}];"
                )
                lines.append(f"  s{number} -> f{number};")
                lines += [
                    f"  f{numbers[each]} -> s{number} [dir=none];"
                    for each in derivation.premises
                ]
        return "\n".join([*lines, "}"]) + "\n"

    def _side_conditions(self, derivation: Derivation) -> Iterator[str]:
        yield from map(self.computation_text, derivation.computations)
        for atom in derivation.absent:
            yield f"no {self._printer.atom(atom)}"
        for each in derivation.empty:
            yield f"{self._printer.aggregate(each)} = 0"


def _bullet(depth: int) -> str:
    return " " * (4 * depth - 2) + "- " if depth else ""


def _binding_text(
    binding: Mapping[str, Constant], printer: Printer | None = None
) -> str:
    constant = (printer or Printer({})).constant
    return ", ".join(f"?{name} = {constant(it)}" for name, it in binding.items())


def _indented(texts: Iterable[str], depth: int) -> Iterator[str]:
    return (" " * (4 * depth + 2) + text for text in texts)


def _short(place: str) -> str:
    """Return a place without the folders of the file."""
    return place.replace("\\", "/").rpartition("/")[2]


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


# -------------------------------------------------------------------------------- plans


def plans_text(
    engine: Engine, strata: Iterable[StratumPlan], modules: Sequence[Module]
) -> str:
    """Describe where the facts are, and how each rule of each stratum is run."""
    taken = {rule for module in modules for rule in module.rules}
    everything = engine.materialised
    views = Views(positive=everything, negative=everything)
    lines = [f"facts: {engine.place}"]
    lines += engine.explain_layout()
    for stratum in strata:
        lines.append(f"stratum {stratum.index}")
        rules = set(stratum.rules.rules)
        for module in modules:
            if not rules.isdisjoint(module.rules):
                lines.append(f"  {module.name}, by a module")
                lines += [f"    {rule.written}" for rule in module.rules]
        recursive = _without(stratum.recursive, taken)
        lines += [f"  {each}" for each in engine.explain_recursion(recursive.full)]
        for query in _without(stratum.rules, taken).full.queries:
            steps = engine.explain(query, views)
            lines += [f"  {query.label}", *(f"    {step}" for step in steps)]
    return "\n".join(lines)


def _without(rules: RuleSet, taken: Container[Rule]) -> RuleSet:
    left = tuple(rule for rule in rules.rules if rule not in taken)
    return RuleSet(left, rules.is_local)
