"""Explanations of facts and contradictions.

`read_fact` parses a fact, and `explain` searches for its proof. `WrittenRules` maps
instances of normal rules back to the rules that the user wrote.

If equality is rewritten, the explicit facts that a fact may depend on are copied to a
small engine, in terms of their original constants, and the proof is found there; see
`evermat.maintenance.equality.proofs`.

An update that fails because two values would be equal leaves nothing behind, but its
error contains the explicit facts that imply the equality. The proof is found among
these, again on a small engine.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

from evermat.algebra.compile import variables_of
from evermat.algebra.equality import UnequalValuesError
from evermat.engines import make_engine
from evermat.errors import Label
from evermat.explain.explanation import (
    Derivation,
    Explanation,
    Failure,
    difference,
)
from evermat.explain.proofs import (
    Explainer,
    NoProofError,
    Ordered,
    Prover,
    RuleLook,
    SearchLimitError,
    parts_of,
    search_watch,
    undone,
)
from evermat.kb.inputs import FactError, row_in_order
from evermat.lang.aggregates import (
    group_of,
    names_outside,
    unnamed_targets,
    with_group,
    written_aggregate,
)
from evermat.lang.normalise import (
    filled_atom,
    normal_rules,
    written_binding,
    written_instance,
    written_values,
)
from evermat.lang.parser import parse_query
from evermat.lang.printer import Printer
from evermat.lang.syntax import (
    ANONYMOUS,
    SAME_AS,
    Aggregation,
    Assignment,
    Atom,
    Call,
    Condition,
    Negation,
    Term,
    Variable,
    atom_variables,
    fold,
    is_auxiliary,
    rule_key,
    rule_variables,
    substitute,
)
from evermat.maintenance.equality.proofs import (
    Sources,
    absent_tables,
    plain_axioms,
    visible_arities,
)
from evermat.maintenance.proof import Fact, Instance
from evermat.maintenance.update import declare_rules
from evermat.values import constant

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from evermat.algebra import Engine
    from evermat.errors import Span
    from evermat.explain import proofs
    from evermat.kb.equality import EqualityMaterialisation
    from evermat.kb.materialisation import Materialisation
    from evermat.lang.catalogue import Catalogue
    from evermat.lang.syntax import BodyElement, Expression, Rule
    from evermat.maintenance.proof import Proof, Result
    from evermat.maintenance.rules import RuleBook
    from evermat.values import Constant


_MOST_FAILURES = 20
"""The most rules shown for a fact that does not hold."""


def read_fact(
    text: str,
    row: Sequence[object] | Mapping[str, object] | None,
    *,
    catalogue: Catalogue,
    prefixes: Mapping[str, str],
) -> Fact:
    """Read a fact from its text, or from a predicate and its arguments.

    Raises:
        FactError: the input is not a fact.
        ParseError: the text cannot be parsed.
        UnknownPredicateError: the predicate does not exist.
        ArityClashError: the predicate has another number of arguments.
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
        reason="what is explained is one fact: a predicate with constants",
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
    """The rules of a program as written, looked up by their normal form.

    Args:
        given: all rules, one head each.
        own: the rules that were written; the others are axioms, and come after them.
        prefixes: for displaying IRIs.
    """

    def __init__(
        self,
        given: Mapping[Hashable, Rule],
        own: Sequence[Rule],
        prefixes: Mapping[str, str] | None = None,
    ) -> None:
        self._given = given
        self._places = {rule_key(rule): at for at, rule in enumerate(own)}
        self._sources: dict[Rule, tuple[Rule, Rule]] = {}
        self._prefixes = prefixes or {}

    def rank(self, rule: Rule) -> tuple[int, str]:
        """Return the sort key of a normal rule: its position in the program."""
        written, _ = self._source(rule)
        place = self._places.get(rule_key(written))
        if place is not None:
            return place, ""
        return len(self._places), str(written)

    def derivation(self, instance: Instance) -> Derivation:
        """Translate an instance of a normal rule to one of the rule as written."""
        written, normal = self._source(instance.rule)
        renamed = Instance(normal, instance.values)
        found = written_instance(written, renamed.binding)
        binding = dict(found.binding)
        outside = names_outside(written)
        empty = []
        for element, _ in self.empty_groups(instance.rule):
            group = group_of(element, outside)
            values = [binding[name] for name in group if name in binding]
            if len(values) == len(group):
                empty.append(with_group(element, group, values))
            binding[element.target.name] = constant(0)
        unnamed = unnamed_targets(written.body)
        binding = {n: value for n, value in binding.items() if n not in unnamed}
        return Derivation(
            rule=written,
            is_member=instance.rule.head.predicate.startswith("~members"),
            binding=binding,
            premises=renamed.premises,
            absent=found.absent,
            computations=found.computations,
            is_axiom=rule_key(written) not in self._places,
            empty=tuple(empty),
        )

    def failure(self, found: proofs.Failure) -> Failure:
        """Translate a failed match of a rule to the rule as written."""
        written, normal = self._source(found.rule)
        values = zip(variables_of(normal), found.values, strict=True)
        bound = {name: value for name, value in values if value is not None}
        known = written_values(written, bound)
        part = parts_of(normal)[found.failed]
        if isinstance(part, Atom) and part.predicate in self._sources_of_results:
            part = filled_atom(part, known)
            return Failure(
                written, written_binding(written, known), found.matches, part
            )
        return Failure(
            rule=written,
            binding=written_binding(written, known),
            matches=found.matches,
            failed=_as_written(part, written, normal, known),
        )

    def explanation(self, proof: Proof, prefixes: Mapping[str, str]) -> Explanation:
        """Translate a proof to the rules as written."""
        return Explanation(
            proof.fact,
            holds=True,
            steps={
                each: None if step is None else self.derivation(step)
                for each, step in proof.steps.items()
            }
            | {each: self._result(found) for each, found in proof.results.items()},
            heights=_with_results(proof),
            prefixes=prefixes,
            texts=self._texts(proof, prefixes),
        )

    def _result(self, result: Result) -> Derivation:
        """Explain the value of an aggregate."""
        written, _ = self._source(result.rule)
        return Derivation(
            rule=written,
            binding={},
            premises=result.members,
            is_axiom=rule_key(written) not in self._places,
            size=result.size,
        )

    def _texts(self, proof: Proof, prefixes: Mapping[str, str]) -> dict[Fact, str]:
        """Return the texts of results and members of aggregates."""
        printer = Printer(prefixes)
        texts: dict[Fact, str] = {}
        for fact, result in proof.results.items():
            texts[fact] = self.result_text(fact, printer)
            for member in result.members:
                if is_auxiliary(member.relation):
                    inside = ", ".join(map(printer.constant, member.row))
                    texts[member] = f"the tuple ({inside})"
        return texts

    def result_text(self, fact: Fact, printer: Printer) -> str:
        """Return the text of an aggregate's result, in terms of the rule as written."""
        written, _ = self._sources_of_results[fact.relation]
        found = written_aggregate(written, fact.relation)
        if found is None:
            return printer.constant(fact.row[-1])
        element, group = found
        filled = with_group(element, group, fact.row)
        value = printer.constant(fact.row[len(group)])
        return f"{printer.aggregate(filled)} = {value}"

    @cached_property
    def _sources_of_results(self) -> dict[str, tuple[Rule, Rule]]:
        return {
            normal.head.predicate: (written, normal)
            for written, normal in self._by_normal_form.values()
            if normal.has_aggregates
        }

    def is_result(self, predicate: str) -> bool:
        """Return whether the facts of a predicate are results of aggregates."""
        return predicate in self._sources_of_results

    def differing(self, failed: Atom, actual: Fact | None) -> str:
        """Describe the actual value of an aggregate, where another is expected."""
        printer = Printer(self._prefixes)
        found = written_aggregate(
            self._sources_of_results[failed.predicate][0], failed.predicate
        )
        if found is None:
            return "an aggregate has another value"
        element, group = found
        fixed = [each.constant for each in failed.arguments if isinstance(each, Term)]
        text = printer.aggregate(with_group(element, group, fixed[: len(group)]))
        if actual is None:
            return f"{text} has no members"
        value = actual.row[len(group)]
        wanted = failed.arguments[len(group)]
        message = f"{text} = {printer.constant(value)}"
        if isinstance(wanted, Term):
            missing = difference(wanted.constant, value)
            message += f", not {printer.constant(wanted.constant)}"
            if missing is not None:
                message += f": {missing}"
        return message

    def empty_groups(self, normal: Rule) -> Iterator[tuple[Aggregation, str]]:
        """Yield the aggregates whose groups are empty when a normal rule applies."""
        written, _ = self._source(normal)
        for atom in normal.negated_atoms():
            for name in (
                self._sources_of_results if is_auxiliary(atom.predicate) else ()
            ):
                found = written_aggregate(written, name)
                if found is not None and atom.predicate.startswith(f"~{name}("):
                    yield found[0], name

    def _source(self, rule: Rule) -> tuple[Rule, Rule]:
        """Return the written rule of a normal rule, and its normal form.

        If several written rules have this normal form, the one that was written in
        normal form is preferred, then the first.
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
    """Return a part of a normal rule with values, in the form that users wrote."""
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
        case Aggregation():
            return part
        case Assignment(variable=variable, expression=value):
            return Condition(
                cast("Call", substitute(Call("=", (variable, value)), known))
            )


def _with_results(proof: Proof) -> dict[Fact, int]:
    """Return the heights of all facts, with aggregates above their members."""
    if not proof.results:
        return dict(proof.heights)
    premises: dict[Fact, tuple[Fact, ...]] = {
        fact: () if step is None else step.premises
        for fact, step in proof.steps.items()
    }
    premises |= {fact: found.members for fact, found in proof.results.items()}
    heights = dict.fromkeys(premises, 0)
    waiting = True
    rounds = 0
    while waiting and rounds <= len(premises):  # results can depend on each other
        waiting, rounds = False, rounds + 1
        for fact, needed in premises.items():
            height = 1 + max((heights.get(each, 0) for each in needed), default=-1)
            if height > heights[fact]:
                heights[fact], waiting = height, True
    return heights


def explain(
    materialisation: Materialisation,
    fact: Fact,
    *,
    own: Sequence[Rule],
    prefixes: Mapping[str, str],
    derivations: int = 0,
    limit: int | None = None,
) -> Explanation:
    """Explain why a fact holds, or that it does not.

    Args:
        materialisation: the facts.
        fact: a fact of a known predicate.
        own: the rules as written.
        prefixes: for displaying IRIs.
        derivations: the number of derivations to show.
        limit: the most rule instances to match.
    """
    rules = WrittenRules(materialisation.book.written, own, prefixes)
    prover = Prover(
        materialisation.engine,
        materialisation.rule_look,
        Ordered(rules.rank),
        limit=limit,
        progress=materialisation.progress,
    )
    explainer = Explainer(prover, materialisation.reading)

    def described(found: proofs.Failure) -> Failure:
        """Add the actual value of the aggregate at which a rule fails."""
        failure = rules.failure(found)
        failed = failure.failed
        if not isinstance(failed, Atom) or not rules.is_result(failed.predicate):
            return failure
        return replace(
            failure, remark=rules.differing(failed, explainer.actual(failed))
        )

    proof = explainer.prove(fact)
    if proof is None:
        return Explanation(
            fact,
            holds=False,
            failures=tuple(map(described, explainer.failures(fact, _MOST_FAILURES))),
            prefixes=prefixes,
        )
    immediate = explainer.derivations(fact) if derivations else []
    explanation = rules.explanation(proof, prefixes)
    return replace(
        explanation,
        derivations=tuple(map(rules.derivation, immediate[:derivations])),
        derivation_count=len(immediate) if derivations else None,
    )


# ---------------------------------------------------------------- equality explanations


_FIRST_DEPTH = 4
"""The initial number of levels to search."""


def explain_rewritten(
    materialisation: EqualityMaterialisation,
    fact: Fact,
    *,
    own: Sequence[Rule],
    prefixes: Mapping[str, str],
    limit: int | None = None,
) -> Explanation:
    """Explain a fact that holds, from explicit facts.

    Args:
        materialisation: the facts, in terms of representatives.
        fact: the fact, in terms of any constants.
        own: the rules as written.
        prefixes: for displaying IRIs.
        limit: the most rule instances to match.
    """
    axioms = plain_axioms(visible_arities(materialisation.engine))
    given = {rule_key(rule): rule for rule in axioms} | dict(
        materialisation.book.written
    )
    rules = WrittenRules(given, own)
    search = _Search(
        materialisation, RuleLook((*materialisation.rules, *axioms)), rules, limit
    )
    return rules.explanation(search.prove(fact), prefixes)


class _Search:
    """Searches for a proof from a growing set of explicit facts."""

    def __init__(
        self,
        materialisation: EqualityMaterialisation,
        look: RuleLook,
        rules: WrittenRules,
        limit: int | None,
    ) -> None:
        self._materialisation = materialisation
        self._look = look
        self._order = Ordered(rules.rank)
        self._limit = limit

    def prove(self, fact: Fact) -> Proof:
        """Return the proof of a fact that holds."""
        materialisation = self._materialisation
        with undone(
            materialisation.engine, search_watch(self._limit, materialisation.progress)
        ):
            sources = Sources.of(
                materialisation.engine,
                materialisation.representatives,
                materialisation.rules,
                fact,
            )
            depth = _FIRST_DEPTH
            while True:
                sources.widen(depth)
                proof = self._prove_among(sources, fact)
                is_enough = sources.is_whole or (
                    proof is not None and proof.heights[fact] <= depth
                )
                if proof is not None and is_enough:
                    return proof
                if is_enough:
                    raise NoProofError(
                        "a fact holds that does not follow from explicit facts",
                        help="materialise anew, and please report this",
                    )
                depth *= 2

    def _prove_among(self, sources: Sources, fact: Fact) -> Proof | None:
        materialisation, look = self._materialisation, self._look
        tables = dict(sources.tables())
        absent = absent_tables(
            materialisation.engine,
            materialisation.representatives,
            materialisation.rules,
            tables.values(),
        )
        small = self._small_engine(tables)
        prover = Prover(small, look, self._order, limit=self._limit)
        with prover.at_work():
            negative = small.no_facts()
            for name, table in absent:
                negative = small.settle(negative | small.intern(name, table))
            return prover.prove(fact, negative=negative)

    def _small_engine(self, tables: Mapping[str, pa.Table]) -> Engine:
        small = make_engine("embedded")
        for name, arity in self._materialisation.engine.relations().items():
            small.declare(name, arity)
        declare_rules(small, self._look.rules)
        small.load(tables.items())
        return small


# ----------------------------------------------------------------- contradiction proofs


MOST_INSTANCES = 1_000_000
"""The most rule instances to match for a proof."""
MOST_LINES = 40
"""The most lines of a proof shown by an error."""


def with_proof(
    error: UnequalValuesError, book: RuleBook, prefixes: Mapping[str, str]
) -> UnequalValuesError:
    """Return the error with a proof of the equality, if one is found quickly.

    Args:
        error: the error as it was raised.
        book: the rules of the update.
        prefixes: for displaying IRIs.
    """
    if error.given is None:
        return error
    fact = Fact(SAME_AS, (error.left, error.right))
    explanation = _explain(fact, error.given, book, prefixes)
    if explanation is None:
        return error
    proved = UnequalValuesError(error.left, error.right, given=error.given)
    proved.derivation = error.derivation
    proved.explanation = explanation
    proved.proof = _beginning(explanation)
    return proved


def _explain(
    fact: Fact,
    given: Mapping[str, pa.Table],
    book: RuleBook,
    prefixes: Mapping[str, str],
) -> Explanation | None:
    """Explain a fact from explicit facts, if a proof is found quickly."""
    # Equality does not depend on negation.
    normal = [rule for rule in book.normal.values() if not any(rule.negated_atoms())]
    small = make_engine("embedded")
    for name, table in given.items():
        small.declare(name, table.num_columns)
    declare_rules(small, normal)
    axioms = plain_axioms(visible_arities(small))
    declare_rules(small, axioms)
    small.load(given.items())
    by_key = {rule_key(rule): rule for rule in axioms} | dict(book.written)
    rules = WrittenRules(by_key, tuple(book.written.values()))
    look = RuleLook((*normal, *axioms))
    prover = Prover(small, look, Ordered(rules.rank), limit=MOST_INSTANCES)
    try:
        with prover.at_work():
            proof = prover.prove(fact, negative=small.no_facts())
    except SearchLimitError:
        return None
    return None if proof is None else rules.explanation(proof, prefixes)


def _beginning(explanation: Explanation) -> tuple[str, ...]:
    """Return the first lines of a long proof, which show its last steps."""
    lines = str(explanation).splitlines()
    more = len(lines) - MOST_LINES
    if more <= 0:
        return tuple(lines)
    return (*lines[:MOST_LINES], f"… and {more:,} more lines: see `explanation`")
