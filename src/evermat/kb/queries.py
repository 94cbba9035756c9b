"""Queries, and the readers of a knowledge base.

A query is a conjunction of atoms, negated atoms and built-ins. It is a rule without a
head: it is checked, normalised and compiled like a rule, and then run once against the
stored facts.

There is a reader for each way of storing facts. `PlainReader` reads facts as they are,
and expands lazy closures. `RewrittenReader` reads facts in terms of representatives:
constants of a query are replaced by their representatives, equalities in it unify
terms, and each answer represents all answers that differ from it only in equal
constants. `Result` expands these on reading. The arguments of built-ins are expanded
before the built-ins are evaluated: these answer columns contain names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from evermat.algebra import Aggregate, Column, Pattern, Region, Views
from evermat.algebra.compile import compile_aggregate, query_of
from evermat.columns import as_terms, empty_table, joined_tables, term_table
from evermat.engines import make_engine
from evermat.errors import EvermatError
from evermat.explain.explanation import Explanation
from evermat.kb.equality import with_equality
from evermat.kb.explanations import explain, explain_rewritten
from evermat.kb.materialisation import Materialisation
from evermat.kb.requests import RequestError
from evermat.lang.aggregates import is_aggregate_rule, unnamed_targets
from evermat.lang.checks import require_valid
from evermat.lang.equality import (
    CONSTANT,
    answers_with_names,
    constants_of,
    refuse_aggregates,
    replace_constants,
    rule_constants,
    without_equality_in,
)
from evermat.lang.equality_builtins import NAME, OTHER, reads_other_names
from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_query
from evermat.lang.strata import stratify
from evermat.lang.syntax import (
    ANONYMOUS,
    SAME_AS,
    TRIPLE,
    Aggregation,
    Atom,
    Condition,
    Declaration,
    Program,
    Rule,
    Term,
    Variable,
    atom_variables,
    body_atoms,
    expression_variables,
)
from evermat.maintenance.counting import Kept
from evermat.maintenance.equality.program import all_names, explicit_among, values_among
from evermat.maintenance.proof import rows_in
from evermat.results.change import distant_relation, read_relation, split
from evermat.results.result import Result
from evermat.values import boolean_constant

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Hashable,
        Iterator,
        Mapping,
        Sequence,
    )

    from evermat.algebra import Engine, Facts, Query
    from evermat.algebra.engine import DistantRows
    from evermat.kb.equality import EqualityMaterialisation
    from evermat.lang.catalogue import Catalogue, Predicate
    from evermat.lang.syntax import BodyElement
    from evermat.maintenance.counting import CountersSetting
    from evermat.maintenance.proof import Fact
    from evermat.results.change import Sort
    from evermat.values import Constant


ANSWER = "~answer"
"""The predicate of answers."""

_YES = Atom(ANSWER, (Term(boolean_constant(value=True)),))
"""The answer to a query without variables."""


@dataclass(frozen=True, slots=True, eq=False)
class PreparedQuery:
    """A query, ready to be run.

    Attributes:
        columns: the variables, in order of their first occurrence.
        queries: the queries that find the answers. Without variables each yields one
            row, `true`. None if a condition, such as `1 > 2`, rules out every answer;
            several only if groups of aggregates may be empty.
        body: the original query.
        auxiliaries: queries to evaluate first, in order: the facts below a `not` that
            has variables of its own, and aggregates with their members.
    """

    columns: tuple[str, ...]
    queries: tuple[Query, ...]
    auxiliaries: tuple[Query | Aggregate, ...]
    body: tuple[BodyElement, ...] = ()

    @property
    def patterns(self) -> tuple[Pattern, ...]:
        """Return all patterns that facts are matched with."""
        found: list[Pattern] = []
        for step in (*self.queries, *self.auxiliaries):
            if isinstance(step, Aggregate):
                columns = tuple(map(Column, range(step.arity)))
                found.append(Pattern(step.members, columns))
            else:
                found += [*step.positive, *step.negative]
        return tuple(found)


def require_text(given: object, what: str) -> None:
    """Raise an error unless the value is a string."""
    if not isinstance(given, str):
        raise RequestError(
            f"{what} must be a string, not `{type(given).__name__}`: {given!r}",
            help="write it in the language, between quotes",
        )


def prepare_query_text(
    text: str,
    *,
    catalogue: Catalogue,
    prefixes: Mapping[str, str],
    parameters: Mapping[str, Constant] | None = None,
) -> PreparedQuery:
    """Parse and check a query; `parameters` are the values of `$name` in it.

    Raises:
        ParseError: the text is not a query.
        UnknownPredicateError: a predicate of the query does not exist.
        ArityClashError: an atom has too few or too many arguments.
        ProgramError: a variable is not bound, or a built-in is misused.
    """
    return prepare_query(
        parse_query(text, prefixes=prefixes, parameters=parameters),
        text=text,
        catalogue=catalogue,
    )


def prepare_query(
    body: tuple[BodyElement, ...], *, text: str, catalogue: Catalogue
) -> PreparedQuery:
    """Check a query; `text` is shown in messages."""
    for atom in body_atoms(body):
        span = atom.predicate_span or atom.span
        known = catalogue.require(atom.predicate, span=span)
        catalogue.check(known.name, atom.arity, span=atom.span)
    # Checked without a head, so that errors refer to the body.
    declared = tuple(_declaration(catalogue, atom) for atom in body_atoms(body))
    require_valid(Program(rules=(Rule((_YES,), body),), declarations=declared))
    columns = tuple(dict.fromkeys(_open_variables(body)))
    head = Atom(ANSWER, tuple(Variable(name) for name in columns)) if columns else _YES
    rules = normalise((Rule((head,), body),))
    answers = [rule for rule in rules if rule.head.predicate == ANSWER]
    if not answers:
        return PreparedQuery(columns, (), (), body)
    queries = tuple(query_of(rule, text.strip()) for rule in answers)
    others = [rule for rule in rules if rule not in answers]
    auxiliaries = tuple(_in_order(others)) if others else ()
    return PreparedQuery(columns, queries, auxiliaries, body)


def _in_order(rules: Sequence[Rule]) -> Iterator[Query | Aggregate]:
    """Yield the queries and aggregates of auxiliary rules, in order of dependency."""
    if not any(map(is_aggregate_rule, rules)):
        yield from map(query_of, rules)  # negated atoms do not depend on each other
        return
    for stratum in stratify(rules).strata:
        for rule in stratum.aggregate_rules:
            yield compile_aggregate(rule).aggregate
        yield from map(query_of, stratum.rules)


def _declaration(catalogue: Catalogue, atom: Atom) -> Declaration:
    known = catalogue.require(atom.predicate)
    return Declaration(known.name, known.arity, known.types)


MOST_PREPARED = 256
"""The most queries that are cached; the least recently used ones are dropped."""


class PreparedQueries:
    """A cache of prepared queries, least recently used first.

    The meaning of a query depends on the known predicates and on prefixes, so the cache
    is cleared when these change.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, PreparedQuery] = {}
        self._catalogue: Catalogue | None = None
        self._prefixes: Mapping[str, str] = {}

    def follow(self, catalogue: Catalogue, prefixes: Mapping[str, str]) -> None:
        """Clear the cache if the catalogue or the prefixes have changed."""
        if self._catalogue is not catalogue or self._prefixes != prefixes:
            self._catalogue, self._prefixes = catalogue, prefixes
            self._known.clear()

    def get(self, key: Hashable, prepare: Callable[[], PreparedQuery]) -> PreparedQuery:
        """Return the query with a key, preparing it if it is not cached."""
        found = self._known.pop(key, None)
        if found is None:
            found = prepare()
            if len(self._known) >= MOST_PREPARED:
                del self._known[next(iter(self._known))]
        self._known[key] = found  # now the most recently used
        return found


def ask(
    engine: Engine, question: PreparedQuery, facts: Facts
) -> pa.Table | DistantRows:
    """Return the distinct answers, as term columns; for no columns, one row or none.

    Args:
        engine: the engine. If the query has auxiliaries, it must be in a transaction
            that is going to be rolled back.
        question: the query.
        facts: the facts to query.
    """
    if not question.queries:
        return empty_table(len(question.columns))
    found = engine.no_facts()
    for step in question.auxiliaries:
        known = facts | found
        if isinstance(step, Aggregate):
            engine.declare(step.values, step.result_arity)
            results = engine.aggregate([step], known)
        else:
            relation = step.head.relation
            engine.declare(relation, len(step.head.operands))
            rows = engine.answer(step, Views(positive=known, negative=known))
            results = engine.intern(relation, rows)
        # Settled here, because engines can only nest views to a limited depth.
        found = engine.settle(found | results)
    known = facts | found if question.auxiliaries else facts
    views = Views(positive=known, negative=known)
    if question.columns and len(question.queries) == 1:
        return engine.answer_distant(question.queries[0], views)
    first, *others = question.queries
    table = engine.answer(first, views)
    if others:
        table = joined_tables([table, *(engine.answer(q, views) for q in others)])
    return table if question.columns else table.slice(0, 1).select([])


def _open_variables(body: tuple[BodyElement, ...]) -> Iterator[str]:
    """Yield the variables outside of negations, which answers bind."""
    unnamed = {ANONYMOUS}
    if any(isinstance(element, Aggregation) for element in body):
        unnamed |= unnamed_targets(body)
    for element in body:
        match element:
            case Atom():
                found = atom_variables(element)
            case Condition(expression=expression):
                found = expression_variables(expression)
            case Aggregation(target=target):
                found = iter((target,))
            case _:
                continue
        yield from (each.name for each in found if each.name not in unnamed)


# --------------------------------------------------------------------- equality queries


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Answers in terms of representatives.

    Attributes:
        rows: term columns.
        names: the columns that contain names; the others contain representatives.
    """

    rows: pa.Table
    names: frozenset[int] = frozenset()


def ask_representatives(
    materialisation: EqualityMaterialisation,
    columns: Sequence[str],
    body: tuple[BodyElement, ...],
    *,
    raw: bool,
) -> Answers:
    """Return the answers to a query.

    Args:
        materialisation: the facts.
        columns: the variables of the answers.
        body: the query.
        raw: return representatives in all columns.
    """
    variables = tuple(Variable(name) for name in columns)
    terms = variables or _YES.arguments
    refuse_aggregates((Rule((Atom(ANSWER, terms),), body),))
    normal = normalise((Rule((Atom(ANSWER, terms),), body),))
    representatives = materialisation.representatives
    names: frozenset[int] = frozenset()
    if representatives.is_identity():
        rules = without_equality_in(normal)
    else:
        values = values_among(materialisation.engine.relations())
        rules, names = answers_with_names(normal, ANSWER, values, raw=raw)
    replaced = representatives.replaced(rule_constants(rules))
    rules = tuple(replace_constants(rule, replaced) for rule in rules)
    table = _ask(materialisation, rules, len(terms))
    return Answers(table, names) if columns else Answers(table.select([]))


def _ask(
    materialisation: EqualityMaterialisation, rules: tuple[Rule, ...], arity: int
) -> pa.Table:
    engine = materialisation.engine
    needs_constants = any(
        atom.predicate == CONSTANT
        for rule in rules
        for atom in (*rule.positive_atoms(), *rule.negated_atoms())
    )
    engine.begin()
    try:
        everything: Facts = engine.materialised
        if needs_constants:
            everything = everything | _constants(materialisation)
        if any(map(reads_other_names, rules)) and NAME not in engine.relations():
            names = all_names(engine, materialisation.representatives)
            everything = everything | names
        known = everything
        # Settled here, because engines can only nest views to a limited depth.
        others = engine.no_facts()
        answers: Facts = engine.no_facts()
        for rule in sorted(rules, key=_rank):
            query = query_of(rule)
            rows = engine.answer(query, Views(known, known))
            facts = engine.intern(rule.head.predicate, rows)
            if rule.head.predicate == ANSWER:
                answers = answers | facts
            else:
                others = engine.settle(others | facts)
                known = everything | others
        snapshot = engine.snapshot(engine.settle(answers))
        if not snapshot.relations():
            return empty_table(arity)
        return snapshot.read(ANSWER)
    finally:
        engine.rollback()


def _rank(rule: Rule) -> int:
    """Return the rank of a rule: all may read `~other`, and none reads answers."""
    return {OTHER: 0, ANSWER: 2}.get(rule.head.predicate, 1)


def _constants(materialisation: EqualityMaterialisation) -> Facts:
    """Return all constants that occur in a fact or are equal to another constant."""
    engine = materialisation.engine
    cliques = materialisation.representatives.cliques()
    facts: Facts = engine.intern(CONSTANT, cliques.select([1]))
    everything = engine.materialised
    for rule in constants_of(engine.relations()):
        rows = engine.answer(query_of(rule), Views(everything, everything))
        facts = engine.settle(facts | engine.intern(CONSTANT, rows))
    return facts


def explicit_table(engine: Engine, predicate: str, arity: int) -> pa.Table:
    """Return the explicit facts of a predicate, as they were inserted."""
    region = Region(frozenset({predicate}))
    snapshot = engine.snapshot(engine.explicit.within(region))
    if not snapshot.relations().get(predicate):
        return empty_table(arity)
    engine.begin()
    try:
        found = explicit_among(engine, engine.find(predicate, snapshot.read(predicate)))
        explicit = engine.snapshot(found)
    finally:
        engine.rollback()
    if not explicit.relations().get(predicate):
        return empty_table(arity)
    return explicit.read(predicate)


# ------------------------------------------------------------------------------ reading


class NoCountersError(EvermatError, RuntimeError):
    """Counters were requested that are not kept."""

    code: ClassVar[str] = "EM556"


class NoExplanationError(EvermatError, NotImplementedError):
    """An explanation is not supported."""

    code: ClassVar[str] = "EM562"


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A request to explain a fact.

    Attributes:
        fact: the fact.
        own: the rules as written.
        prefixes: for displaying IRIs.
        derivations: the number of derivations to show.
        limit: the most rule instances to match.
    """

    fact: Fact
    own: Sequence[Rule]
    prefixes: Mapping[str, str]
    derivations: int = 0
    limit: int | None = None


class Reader(ABC):
    """Reads materialised facts.

    Attributes:
        catalogue: the predicates that can be queried.
    """

    catalogue: Catalogue
    _prepared: PreparedQueries

    def question(
        self,
        text: str,
        prefixes: Mapping[str, str],
        parameters: Mapping[str, Constant],
    ) -> PreparedQuery:
        """Return the prepared query of a text; see `prepare_query_text`."""
        return self._prepared.get(
            (text, *parameters.items()),
            lambda: prepare_query_text(
                text,
                catalogue=self.catalogue,
                prefixes=prefixes,
                parameters=parameters,
            ),
        )

    @abstractmethod
    def answer(self, question: PreparedQuery, *, raw: bool = False) -> Result:
        """Return the answers to a query; with `raw`, in terms of representatives."""

    def match(
        self, atoms: tuple[Atom, ...], names: tuple[str, ...], *, explicit: bool = False
    ) -> pa.Table:
        """Return the distinct values of variables for which all atoms hold, as terms.

        Atoms of unknown predicates do not hold. Without variables, the result is one
        empty row if the atoms hold, and no row otherwise. With `explicit`, only
        explicit facts are matched, and equal constants are distinct.
        """
        if any(atom.predicate not in self.catalogue for atom in atoms):
            return empty_table(len(names))
        question = self._prepared.get(
            atoms,
            lambda: prepare_query(atoms, text="a pattern", catalogue=self.catalogue),
        )
        ask_it = self.explicit_answer if explicit else self.answer
        found = ask_it(question).to_terms()
        return found if question.columns == names else found.select(list(names))

    def explicit_answer(self, question: PreparedQuery) -> Result:
        """Return the answers to a query without auxiliaries over explicit facts."""
        engine = make_engine("embedded")
        for name in {atom.predicate for atom in body_atoms(question.body)}:
            known = self.catalogue.require(name)
            engine.declare(name, known.arity)
            engine.load([(name, self.facts(known, "explicit").to_terms())])
        return Result(ask(engine, question, engine.materialised), question.columns)

    @abstractmethod
    def facts(self, known: Predicate, sort: Sort) -> Result:
        """Return the facts of a predicate."""

    @abstractmethod
    def count(self, known: Predicate) -> int:
        """Return the number of facts of a predicate."""

    @abstractmethod
    def contains(self, known: Predicate, row: pa.Table) -> bool:
        """Return whether a fact holds."""

    @abstractmethod
    def counters(self, known: Predicate) -> Result:
        """Return the facts of a predicate with the number of their derivations."""

    @abstractmethod
    def representatives(self) -> pa.Table:
        """Return the constants that are equal to others, with their representatives."""

    @abstractmethod
    def explain(self, asked: ExplainRequest) -> Explanation:
        """Explain why a fact holds."""

    @abstractmethod
    def sizes(self) -> dict[str, dict[str, int]]:
        """Return the sizes of predicates, in the form of `Stats`."""


class PlainReader(Reader):
    """Reads facts that are stored as they are, or in lazy closures."""

    def __init__(
        self,
        materialisation: Materialisation,
        catalogue: Catalogue,
        prepared: PreparedQueries,
        counters: CountersSetting,
    ) -> None:
        self._materialisation = materialisation
        self._prepared = prepared
        self.catalogue = catalogue
        self._counters = counters

    def answer(self, question: PreparedQuery, *, raw: bool = False) -> Result:
        """Return the answers to a query; all constants are representatives."""
        del raw
        reading, patterns = self._materialisation.reading, question.patterns
        is_scratching = bool(question.auxiliaries)
        if len(question.queries) == 1 and question.columns and not is_scratching:
            table = reading.answer(question.queries[0])
            if table is not None:
                return Result(table, question.columns)
        with reading.facts(patterns, is_scratching=is_scratching) as facts:
            found = ask(self._materialisation.engine, question, facts)
        return Result(found, question.columns)

    def explicit_answer(self, question: PreparedQuery) -> Result:
        """Return the answers to a query without auxiliaries over explicit facts."""
        engine = self._materialisation.engine
        return Result(ask(engine, question, engine.explicit), question.columns)

    def facts(self, known: Predicate, sort: Sort) -> Result:
        """Return the facts of a predicate."""
        name, engine = known.name, self._materialisation.engine
        chosen: dict[str, Facts] = {
            "all": engine.materialised,
            "explicit": engine.explicit,
            "derived": engine.materialised - engine.explicit,
        }
        region = Region(frozenset({name}))
        snapshot = engine.snapshot(chosen[sort].within(region))
        rest = (
            [] if sort == "explicit" else list(self._materialisation.reading.rest(name))
        )
        distant = None if rest else distant_relation(snapshot, name)
        if distant is not None:
            return Result(distant, known.columns, predicate=name)
        table = read_relation(snapshot, name, known.arity)
        parts = [read_relation(each, name, known.arity) for each in rest]
        return Result(joined_tables([table, *parts]), known.columns, predicate=name)

    def count(self, known: Predicate) -> int:
        """Return the number of facts of a predicate."""
        return self._materialisation.reading.size(known.name)

    def contains(self, known: Predicate, row: pa.Table) -> bool:
        """Return whether a fact holds."""
        return self._materialisation.reading.contains(known.name, row)

    def counters(self, known: Predicate) -> Result:
        """Return the facts of a predicate with the number of their derivations."""
        counters = Kept.of(self._counters)
        if counters is Kept.NONE:
            raise NoCountersError(
                "this knowledge base keeps no counters",
                help="make it with `counters=True`, which is the default",
            )
        names = ("c_nr", "c_r") if counters is Kept.BOTH else ("c_nr",)
        columns = (*known.columns, *names)
        if not self.count(known):
            # Engines do not know predicates that never had facts.
            return Result(empty_table(len(columns)), columns)
        table = self._materialisation.reading.counts(known.name)
        terms = [as_terms(column) for column in table.columns[: len(columns)]]
        return Result(pa.table(terms, names=list(columns)), columns)

    def representatives(self) -> pa.Table:
        """Return an empty table: all constants are representatives."""
        return empty_table(2)

    def explain(self, asked: ExplainRequest) -> Explanation:
        """Explain why a fact holds."""
        return explain(
            self._materialisation,
            asked.fact,
            own=asked.own,
            prefixes=asked.prefixes,
            derivations=asked.derivations,
            limit=asked.limit,
        )

    def sizes(self) -> dict[str, dict[str, int]]:
        """Return the sizes of predicates; lazy closures count in full."""
        materialisation = self._materialisation
        sizes = _stored_sizes(materialisation, self.catalogue)
        for name in materialisation.reading.lazy.intersection(sizes):
            sizes[name]["facts"] = materialisation.reading.size(name)
        return sizes


class RewrittenReader(Reader):
    """Reads facts in terms of representatives, and expands them."""

    def __init__(
        self,
        materialisation: EqualityMaterialisation,
        catalogue: Catalogue,
        prepared: PreparedQueries,
    ) -> None:
        self._materialisation = materialisation
        self._prepared = prepared
        self._stored = catalogue
        self.catalogue = with_equality(catalogue)

    def answer(self, question: PreparedQuery, *, raw: bool = False) -> Result:
        """Return the answers to a query; with `raw`, in terms of representatives."""
        found = ask_representatives(
            self._materialisation, question.columns, question.body, raw=raw
        )
        if raw:
            return Result(found.rows, question.columns)
        return Result(
            found.rows,
            question.columns,
            self._materialisation.representatives,
            names=found.names,
        )

    def facts(self, known: Predicate, sort: Sort) -> Result:
        """Return the facts of a predicate."""
        if sort == "all":
            return self._everything(known)
        explicit = explicit_table(self._materialisation.engine, known.name, known.arity)
        if sort == "explicit":
            return Result(explicit, known.columns, predicate=known.name)
        everything = self._everything(known).to_terms()
        rows = split(everything, explicit, sort)
        return Result(rows, known.columns, predicate=known.name)

    def _everything(self, known: Predicate) -> Result:
        names = tuple(Variable(f"x{at}") for at in range(known.arity))
        return self.answer(self._question(known, names)).facts_of(
            known.name, known.columns
        )

    def _question(
        self, known: Predicate, arguments: tuple[Variable | Term, ...]
    ) -> PreparedQuery:
        atom = Atom(known.name, arguments)
        return prepare_query((atom,), text=known.name, catalogue=self.catalogue)

    def count(self, known: Predicate) -> int:
        """Return the number of facts of a predicate."""
        if known.name in {SAME_AS, TRIPLE}:
            return len(self._everything(known))
        materialisation = self._materialisation
        return materialisation.engine.expanded_count(
            known.name, materialisation.representatives
        )

    def contains(self, known: Predicate, row: pa.Table) -> bool:
        """Return whether a fact holds."""
        (values,) = rows_in(term_table(row), 1)
        return self._holds(known, values)

    def _holds(self, known: Predicate, row: Sequence[Constant]) -> bool:
        question = self._question(known, tuple(map(Term, row)))
        return len(self.answer(question, raw=True)) > 0

    def counters(self, known: Predicate) -> Result:
        """Raise an error: counters are not kept."""
        del known
        raise NoCountersError(
            "no counters are kept where equality is rewritten",
            help='use `equality="axioms"`, or `equality="off"`',
        )

    def representatives(self) -> pa.Table:
        """Return the constants that are equal to others, with their representatives."""
        return self._materialisation.representatives.cliques()

    def explain(self, asked: ExplainRequest) -> Explanation:
        """Explain why a fact holds, from explicit facts."""
        if asked.derivations:
            raise NoExplanationError(
                "derivations are not listed where equality is rewritten",
                help='leave `derivations` out, or use `equality="axioms"`',
            )
        known = self.catalogue.require(asked.fact.relation)
        if not self._holds(known, asked.fact.row):
            return Explanation(asked.fact, holds=False, prefixes=asked.prefixes)
        return explain_rewritten(
            self._materialisation,
            asked.fact,
            own=asked.own,
            prefixes=asked.prefixes,
            limit=asked.limit,
        )

    def sizes(self) -> dict[str, dict[str, int]]:
        """Return the sizes of predicates, in terms of representatives."""
        return _stored_sizes(self._materialisation, self._stored)


def reader_of(
    materialisation: Materialisation | EqualityMaterialisation,
    catalogue: Catalogue,
    prepared: PreparedQueries,
    counters: CountersSetting,
) -> Reader:
    """Return a reader for a materialisation."""
    if isinstance(materialisation, Materialisation):
        return PlainReader(materialisation, catalogue, prepared, counters)
    return RewrittenReader(materialisation, catalogue, prepared)


def _stored_sizes(
    materialisation: Materialisation | EqualityMaterialisation, catalogue: Catalogue
) -> dict[str, dict[str, int]]:
    statistics = materialisation.engine.statistics()
    nothing = {"facts": 0, "explicit": 0}
    return {each.name: dict(statistics.get(each.name, nothing)) for each in catalogue}
