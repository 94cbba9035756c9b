"""From a fact that somebody asks about to its explanation."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from evermat.algebra.compile import variables_of
from evermat.errors import Label
from evermat.explain.explanation import Derivation, Explanation, Failure
from evermat.explain.proofs import Explainer, Ordered, Prover
from evermat.explain.why_not import parts_of
from evermat.kb.fact_tables import FactError, row_in_order
from evermat.lang.expressions import fold, substitute
from evermat.lang.normalise import normal_rules, rule_key
from evermat.lang.parser import parse_query
from evermat.lang.syntax import (
    ANONYMOUS,
    Assignment,
    Atom,
    Call,
    Condition,
    Negation,
    Term,
    Variable,
    atom_variables,
    rule_variables,
)
from evermat.lang.written import (
    filled_atom,
    written_binding,
    written_instance,
    written_values,
)
from evermat.maintenance.proof import Fact, Instance
from evermat.values import constant

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from evermat.errors import Span
    from evermat.explain import why_not
    from evermat.kb.materialisation import Materialisation
    from evermat.lang.catalogue import Catalogue
    from evermat.lang.syntax import BodyElement, Expression, Rule
    from evermat.maintenance.proof import Proof
    from evermat.values import Constant


_MOST_FAILURES = 20
"""Rules that are shown for a fact that does not hold."""


def read_fact(
    text: str,
    row: Sequence[object] | Mapping[str, object] | None,
    *,
    catalogue: Catalogue,
    prefixes: Mapping[str, str],
) -> Fact:
    """A fact from its text, or from a predicate and its arguments.

    Raises:
        FactError: that is no fact.
        ParseError: the text cannot be read.
        UnknownPredicateError: there is no such predicate.
        ArityClashError: a fact of it has more or fewer arguments.
    """
    if row is not None:
        known = catalogue.require(text)
        values = row_in_order(row, known)
        if not isinstance(values, tuple | list):
            raise FactError(
                f"the arguments of `{text}` are not a tuple or list: {row!r}",
                help=f"write ({row!r},) for one argument",
            )
        catalogue.check(text, len(values))
        return Fact(known.name, tuple(map(constant, values)))
    match parse_query(text, name="<fact>", prefixes=prefixes):
        case (Atom() as atom,):
            span = atom.predicate_span or atom.span
            known = catalogue.require(atom.predicate, span=span)
            catalogue.check(known.name, atom.arity, span=atom.span)
            return Fact(known.name, tuple(_constants(atom)))
    raise FactError(
        f"`{text.strip()}` is not a fact",
        law="what is explained is one fact: a predicate with constants",
        help="use `query` for conjunctions, and explain what it answers",
    )


def _constants(atom: Atom) -> list[Constant]:
    found = []
    for argument in atom.arguments:
        value = fold(argument)
        if not isinstance(value, Term):
            raise _not_ground(argument.span or atom.span)
        found.append(value.constant)
    return found


def _not_ground(span: Span | None) -> FactError:
    return FactError(
        "a fact that is explained has constants only",
        labels=() if span is None else (Label(span, "stands for any value"),),
        help="find values with `query`, then explain one of its answers",
    )


class WrittenRules:
    """The rules of a program as they were written, by their normal form.

    Args:
        given: all rules, one head each.
        own: those that were written; the others are axioms, and come after them.
    """

    def __init__(self, given: Mapping[Hashable, Rule], own: Sequence[Rule]) -> None:
        self._given = given
        self._places = {rule_key(rule): at for at, rule in enumerate(own)}
        self._sources: dict[Rule, tuple[Rule, Rule]] = {}

    def rank(self, rule: Rule) -> tuple[int, str]:
        """The place of a normal rule in the program."""
        written, _ = self._source(rule)
        place = self._places.get(rule_key(written))
        if place is not None:
            return place, ""
        return len(self._places), str(written)

    def derivation(self, instance: Instance) -> Derivation:
        """An instance of a normal rule as one of the rule that was written."""
        written, normal = self._source(instance.rule)
        renamed = Instance(normal, instance.values)
        found = written_instance(written, renamed.binding)
        return Derivation(
            rule=written,
            binding=found.binding,
            premises=renamed.premises,
            absent=found.absent,
            computations=found.computations,
            is_axiom=rule_key(written) not in self._places,
        )

    def failure(self, found: why_not.Failure) -> Failure:
        """How far a rule gets, in terms of the rule that was written."""
        written, normal = self._source(found.rule)
        values = zip(variables_of(normal), found.values, strict=True)
        bound = {name: value for name, value in values if value is not None}
        known = written_values(written, bound)
        part = parts_of(normal)[found.failed]
        return Failure(
            rule=written,
            binding=written_binding(written, known),
            matches=found.matches,
            failed=_as_written(part, written, normal, known),
        )

    def explanation(self, proof: Proof, prefixes: Mapping[str, str]) -> Explanation:
        """A proof in terms of the rules that were written."""
        return Explanation(
            proof.fact,
            holds=True,
            steps={
                each: None if step is None else self.derivation(step)
                for each, step in proof.steps.items()
            },
            heights=proof.heights,
            prefixes=prefixes,
        )

    def _source(self, rule: Rule) -> tuple[Rule, Rule]:
        """The rule that a normal rule comes from, and its normal form.

        Where several have this normal form, the one that is in normal form as it was
        written, or else the first.
        """
        if rule not in self._sources:
            key = rule_key(rule)
            written = self._given.get(key)
            self._sources[rule] = (
                self._by_normal_form[key] if written is None else (written, written)
            )
        return self._sources[rule]

    @cached_property
    def _by_normal_form(self) -> dict[Hashable, tuple[Rule, Rule]]:
        found: dict[Hashable, tuple[Rule, Rule]] = {}
        for written in self._given.values():
            for key, normal in normal_rules((written,)).items():
                found.setdefault(key, (written, normal))
        return found


def _as_written(
    part: BodyElement, written: Rule, normal: Rule, known: Mapping[str, Expression]
) -> BodyElement:
    """A part of a normal rule with values, and without what only normal rules have."""
    match part:
        case Atom():
            names = {variable.name for variable in rule_variables(written)}
            fresh = {v.name for v in atom_variables(part)} - names
            hidden = dict.fromkeys(fresh, Variable(ANONYMOUS))
            return filled_atom(part, {**hidden, **known})
        case Negation():
            at = [*normal.body].index(part) - len(normal.body)
            atom = [*written.negated_atoms()][at]
            return Negation(filled_atom(atom, known))
        case Condition(expression=call):
            return Condition(cast("Call", substitute(call, known)))
        case Assignment(variable=variable, expression=value):
            return Condition(
                cast("Call", substitute(Call("=", (variable, value)), known))
            )


def explain(
    kept: Materialisation,
    fact: Fact,
    *,
    own: Sequence[Rule],
    prefixes: Mapping[str, str],
    derivations: int = 0,
    limit: int | None = None,
) -> Explanation:
    """Why a fact holds, or that it does not.

    Args:
        kept: what holds.
        fact: a fact of a known predicate.
        own: the rules that were written.
        prefixes: for showing IRIs.
        derivations: how many rule instances that derive the fact are shown.
        limit: how many rule instances may be looked at.
    """
    rules = WrittenRules(kept.book.given, own)
    prover = Prover(
        kept.engine,
        kept.rule_look,
        Ordered(rules.rank),
        limit=limit,
        progress=kept.progress,
    )
    explainer = Explainer(prover, kept.reading)
    proof = explainer.prove(fact)
    if proof is None:
        return Explanation(
            fact,
            holds=False,
            failures=tuple(
                map(rules.failure, explainer.failures(fact, _MOST_FAILURES))
            ),
            prefixes=prefixes,
        )
    immediate = explainer.derivations(fact) if derivations else []
    explanation = rules.explanation(proof, prefixes)
    return replace(
        explanation,
        derivations=tuple(map(rules.derivation, immediate[:derivations])),
        derivation_count=len(immediate) if derivations else None,
    )
