"""`KnowledgeBase`: the public interface to rules, facts and their materialisation.

`evermat.kb.session` makes changes, and `evermat.kb.queries` reads facts. This module
serialises calls from several threads, and keeps other work out of an open transaction.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import islice
from threading import RLock
from typing import TYPE_CHECKING, NoReturn, Self, SupportsIndex, TypedDict

from evermat.columns import table_of_rows
from evermat.engines import ENGINES, UnknownEngineError, make_engine
from evermat.errors.wording import counted
from evermat.explain.explanation import plans_text
from evermat.kb.contradictions import check_policy
from evermat.kb.equality import check_equality
from evermat.kb.explanations import read_fact
from evermat.kb.inputs import listed, row_in_order
from evermat.kb.queries import ExplainRequest, require_text
from evermat.kb.requests import (
    Request,
    RequestError,
    by_predicate,
    listed_rdf,
    rdf_tables,
)
from evermat.kb.session import Session, Settings, Subscriptions
from evermat.kb.transaction import (
    Slot,
    TornError,
    Transaction,
    Undoing,
    inverse,
    out_of_memory,
    serialised,
)
from evermat.lang.syntax import QUAD, TRIPLE, Program
from evermat.maintenance.limits import Budget
from evermat.results.change import UncopiableError, check_sort
from evermat.results.result import Result, html_table, require_package
from evermat.runtime.input_limits import allowing
from evermat.values import constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from pyspark.sql import SparkSession
    from rdflib import Graph

    from evermat.algebra import Engine, Monitor
    from evermat.explain.explanation import Explanation
    from evermat.kb.audit import Audit
    from evermat.kb.contradictions import Contradiction, Policy
    from evermat.kb.equality import Equality
    from evermat.kb.inputs import RuleInput
    from evermat.kb.persistence import Persistence
    from evermat.kb.profile import Profile
    from evermat.kb.queries import Reader
    from evermat.kb.session import Subscription
    from evermat.lake.state import LakeState
    from evermat.lang.catalogue import Catalogue
    from evermat.lang.syntax import Rule
    from evermat.maintenance.counting import CountersSetting
    from evermat.maintenance.limits import Progress
    from evermat.results.change import Change, Sort
    from evermat.sparql.shapes import Validation
    from evermat.values import Constant


class Stats(TypedDict):
    """Sizes; the entries of a predicate are `facts`, `explicit`, `bytes`, `indexes`."""

    engine: str
    place: str
    rules: int
    strata: int
    facts: int
    explicit: int
    contradictions: int
    predicates: dict[str, dict[str, int]]


class KnowledgeBase:
    """Rules and facts, with the consequences kept up to date.

    Facts are explicit (inserted by users), derived by rules, or both. Every change
    returns a `Change` with the exact facts that were added and removed, and is applied
    as a whole or not at all.

    >>> kb = KnowledgeBase('''
    ...     reach(?x, ?y) :- edge(?x, ?y) .
    ...     reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
    ... ''')
    >>> kb.insert("edge", [("a", "b"), ("b", "c")])
    <Change edge +2, reach +3>
    >>> kb.delete("edge", [("a", "b")]).removed("reach").to_list()
    [('a', 'b'), ('a', 'c')]
    >>> kb.query("reach(?x, 'c')").to_list()
    [('b',)]
    """

    _allow_paths: tuple[str | Path, ...] = ()

    def __init__(  # noqa: PLR0913  all but the rules are keyword arguments
        self,
        rules: RuleInput | Iterable[RuleInput] | None = None,
        *,
        engine: str | Engine = "embedded",
        algorithm: str = "auto",
        equality: Equality = "auto",
        counters: CountersSetting = True,
        modules: bool = True,
        budget: Budget | None = None,
        progress: Progress | None = None,
        spark: SparkSession | None = None,
        state: str | Path | LakeState | None = None,
        storage_options: Mapping[str, str] | None = None,
        contradictions: Policy = "report",
        allow_paths: Iterable[str | Path] = (),
    ) -> None:
        """Create a knowledge base.

        Args:
            rules: text, a `Path`, a `Program`, a `Rule`, or a list of these. Facts
                among them are explicit facts.
            engine: `"embedded"`, `"spark"`, `"reference"`, or an engine object.
            algorithm: the default algorithm of updates; the command
                `evermat algorithms` lists them.
            equality: the meaning of `same_as` and `owl:sameAs`: `"off"`, `"axioms"`,
                `"rewrite"`, or `"auto"`, which is `"rewrite"` as soon as a rule or a
                fact is about equality.
            counters: store the number of derivations of each fact, which the counting
                algorithms need; `"nonrecursive"` counts derivations by nonrecursive
                rules only, which is enough for `counting` and `bf-c`. Not available if
                equality is rewritten.
            modules: evaluate rules that make a relation transitive, symmetric or
                reflexive by closure algorithms, not instance by instance. The facts are
                the same; it is only faster. Needs both counters.
            budget: the limits of each update, and of the first materialisation.
            progress: called after every round.
            spark: the session for `engine="spark"`; by default the active one.
            state: a path or URI where every update is stored. An existing state is
                restored and then updated to these rules.
            storage_options: options for remote storage, in the form of `deltalake`.
            contradictions: the treatment of updates after which rules with the head
                `false` derive facts: an error (`"refuse"`), a warning (`"report"`), or
                nothing (`"ignore"`).
            allow_paths: folders from which files of rules may include or import other
                files, besides their own folder; this applies to later updates, too.

        Raises:
            EvermatError: the rules cannot be read or are not valid.
        """
        check_equality(equality)
        check_policy(contradictions)
        _check_watchers(budget, progress)
        persistence: Persistence | None = None
        if state is not None:
            stored = (counters, modules, equality)
            persistence = _persistence(state, stored, storage_options)
        settings = Settings(
            algorithm, equality, counters, modules, budget, progress, contradictions
        )
        chosen = _engine_of(engine, spark)
        self._slot = Slot()
        self._subscriptions = Subscriptions()
        self._undoing = Undoing()
        self.turn = RLock()
        self._allow_paths = tuple(allow_paths)
        with allowing(self._allow_paths):
            self._session = Session(chosen, settings, persistence, rules)

    @classmethod
    def open(  # noqa: PLR0913  all but the place are keyword arguments
        cls,
        state: str | Path,
        *,
        version: int | None = None,
        engine: str | Engine = "embedded",
        algorithm: str = "auto",
        budget: Budget | None = None,
        progress: Progress | None = None,
        spark: SparkSession | None = None,
        storage_options: Mapping[str, str] | None = None,
        contradictions: Policy = "report",
        allow_paths: Iterable[str | Path] = (),
    ) -> Self:
        """Restore a state, with its rules and settings.

        Args:
            state: its path or URI.
            version: an earlier version, which can be queried but not changed.
            engine: as for a new knowledge base, like the others.
            algorithm: the default algorithm of updates.
            budget: the limits of each update.
            progress: called after every round.
            spark: the session for `engine="spark"`.
            storage_options: options for remote storage.
            contradictions: as for a new knowledge base; states do not store it.
            allow_paths: as for a new knowledge base; states do not store them.

        Raises:
            StateError: there is no state, or it cannot be read.
            MissingVersionError: the version does not exist.
        """
        persistence = _persistence_module()
        opened, settings = persistence.existing_state(state, version, storage_options)
        return cls(
            engine=engine,
            algorithm=algorithm,
            **settings,
            budget=budget,
            progress=progress,
            spark=spark,
            state=opened,
            contradictions=contradictions,
            allow_paths=allow_paths,
        )

    @serialised
    def __repr__(self) -> str:
        facts = sum(size["facts"] for size in self._reader.sizes().values())
        rules = len(self.rules)
        counts = f"{counted(rules, 'rule')}, {counted(facts, 'fact')}"
        return f"<KnowledgeBase on {self.engine}: {counts}>"

    def _repr_html_(self) -> str:
        """Return a table of the predicates and their sizes, for notebooks."""
        sizes = self.stats()["predicates"]
        rows = [(name, each["facts"], each["explicit"]) for name, each in sizes.items()]
        names = ("predicate", "facts", "explicit")
        return html_table(repr(self)[1:-1], names if rows else (), rows)

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled: both copies would change the same engine."""
        raise UncopiableError(
            self,
            "`kb.copy()` makes another one; threads can share it, and other processes "
            "can open its state, if it has one (see `state=`)",
        )

    @serialised
    def copy(self) -> KnowledgeBase:
        """Create an independent knowledge base with the same rules, facts and settings.

        The copy is materialised from scratch, and has no state.
        """
        settings = self._session.settings
        other = KnowledgeBase(
            engine=self.engine,
            algorithm=settings.algorithm,
            equality=settings.equality,
            counters=settings.counters,
            modules=settings.modules,
            budget=settings.budget,
            progress=settings.progress,
            contradictions=settings.contradictions,
            allow_paths=self._allow_paths,
        )
        program = Program(
            rules=self.rules,
            prefixes=tuple(self._session.prefixes.items()),
            declarations=tuple(self.catalogue.declarations()),
        )
        explicit = {each: self.facts(each, "explicit") for each in self.predicates}
        other.update(insert=explicit, add_rules=program)
        return other

    # ------------------------------------------------------------------ changes

    @out_of_memory()
    def load(
        self,
        data: Mapping[str, object] | None = None,
        *,
        rdf: object | None = None,
        base: str | None = None,
        named_graphs: bool = False,
    ) -> Change:
        """Insert the facts of many predicates in one update.

        Args:
            data: rows by predicate. Rows are tuples, mappings, a pandas, Polars or
                Arrow frame, or the `Path` of a CSV, TSV, Parquet or Arrow file. Named
                columns are matched to the declared names of a predicate, if it has any.
            rdf: RDF: paths of files, graphs and datasets of rdflib, stores of
                pyoxigraph, or a list of these. Triples become facts of `triple`, which
                rules write as `[?s, ?p, ?o]`.
            base: the base of relative IRIs in RDF files.
            named_graphs: make triples of named graphs facts of `quad`, which rules
                write as `[?s, ?p, ?o, ?g]`; by default they are ordinary triples.
        """
        request = Request(insert=by_predicate(data))
        for part in listed_rdf(rdf):
            triples, quads = rdf_tables(part, base, named_graphs=named_graphs)
            request.insert.setdefault(TRIPLE, []).append(triples)
            if named_graphs:
                request.insert.setdefault(QUAD, []).append(quads)
        return self._change(request)

    def insert(self, predicate: str, rows: object) -> Change:
        """Insert facts; those that are explicit already are ignored.

        Args:
            predicate: any name, also of a predicate that rules derive.
            rows: tuples, mappings, a pandas, Polars or Arrow frame, an RDF graph, or
                the `Path` of a file; see `load`.
        """
        return self._change(Request(insert={predicate: [rows]}))

    def delete(self, predicate: str, rows: object) -> Change:
        """Delete explicit facts; rows that are not explicit are ignored.

        A fact that still follows from the rules continues to hold.
        """
        return self._change(Request(delete={predicate: [rows]}))

    def replace(self, predicate: str, rows: object) -> Change:
        """Replace all explicit facts of a predicate, for example by a nightly dump.

        Earlier rows that are not among the new ones are deleted, new ones are inserted,
        and the others are not touched. Facts that follow from rules continue to hold.

        Args:
            predicate: the predicate.
            rows: in any form that `insert` accepts; an empty list empties the
                predicate.
        """
        return self._change(Request(replace={predicate: [rows]}))

    def update(  # noqa: PLR0913  keyword arguments
        self,
        *,
        insert: Mapping[str, object] | None = None,
        delete: Mapping[str, object] | None = None,
        replace: Mapping[str, object] | None = None,
        add_rules: RuleInput | Iterable[RuleInput] | None = None,
        remove_rules: RuleInput | Iterable[RuleInput] | None = None,
        algorithm: str | None = None,
        batch: tuple[str, int] | None = None,
    ) -> Change:
        """Change facts and rules in one step.

        Deletions are applied before insertions: a row in both is explicit afterwards.

        Args:
            insert: rows to insert, by predicate.
            delete: rows to delete, by predicate.
            replace: all explicit rows of predicates after the update; see `replace`.
            add_rules: new rules; facts among them are inserted.
            remove_rules: rules to remove, in any equivalent spelling; facts among them
                are deleted.
            algorithm: the algorithm of this update.
            batch: an application and the number of its batch, recorded in the same
                commit as the update; the numbers of an application must increase.
        """
        request = _request(insert, delete, replace, add_rules, remove_rules)
        return self._change(request, algorithm=algorithm, batch=batch)

    @serialised
    def undo(self) -> Change:
        """Undo the last update.

        Facts and rules that it deleted are inserted again, and those that it inserted
        are deleted. With a state, this creates a new version.

        Raises:
            NothingToUndoError: there was no update since the knowledge base was created
                or opened, or the last update was undone already, or is too large.
        """
        self._slot.require_free()
        change = self._session.change(self._undoing.last())
        self._undoing.forget()
        self._subscriptions.notify(change)
        return change

    @serialised
    def plan(
        self,
        *,
        insert: Mapping[str, object] | None = None,
        delete: Mapping[str, object] | None = None,
        replace: Mapping[str, object] | None = None,
        add_rules: RuleInput | Iterable[RuleInput] | None = None,
        remove_rules: RuleInput | Iterable[RuleInput] | None = None,
        algorithm: str | None = None,
    ) -> Change:
        """Return the change and the cost of an `update` with the same arguments.

        The work is done and then undone, so the answer is exact.
        """
        self._slot.require_free()
        request = _request(insert, delete, replace, add_rules, remove_rules)
        with allowing(self._allow_paths):
            return self._session.plan(request, algorithm=algorithm)

    def transaction(self, *, algorithm: str | None = None) -> Transaction:
        """Combine several changes: `with kb.transaction() as tx: tx.insert(…)`."""
        return Transaction(self._slot, partial(self._commit, algorithm=algorithm))

    @serialised
    def materialise(self) -> Change:
        """Materialise everything again from the explicit facts."""
        self._slot.require_free()
        return self._session.rematerialise()

    @serialised
    def subscribe(
        self,
        predicate: str | None = None,
        callback: Callable[[Change], object] | None = None,
    ) -> Subscription:
        """Subscribe to the updates that change the facts of a predicate.

        The callback receives the `Change` after the update is complete; an exception in
        it is logged. Without a callback, changes are read with
        `async for change in kb.subscribe("may_open")`.

        Args:
            predicate: the predicate; by default all of them.
            callback: called with each change.
        """
        if predicate is not None:
            self._reader.catalogue.require(predicate)
        return self._subscriptions.add(predicate, callback)

    # ---------------------------------------------------------------- queries

    def query(
        self,
        text: str,
        *,
        raw: bool = False,
        limit: int | None = None,
        **parameters: object,
    ) -> Result:
        """Answer a conjunction such as `reach(?x, 'c'), not blocked(?x), ?x != 'b'`.

        The columns are the variables, in order of their first occurrence; variables
        that occur only below `not` are not among them. The answer to a query without
        variables is one empty row if it holds, and no row otherwise.

        Args:
            text: the query.
            raw: return representatives, without expanding equal constants.
            limit: the most answers to return.
            parameters: the values of `$name`: `kb.query("reach(?x, $y)", y="c")`.
        """
        values = {name: constant(each) for name, each in parameters.items()}
        return self._answer(text, values, raw=raw).first(limit)

    @serialised
    def _answer(
        self, text: str, parameters: Mapping[str, Constant], *, raw: bool
    ) -> Result:
        require_text(text, "a query")
        reader = self._reader
        question = reader.question(text, self._session.prefixes, parameters)
        found = reader.answer(question, raw=raw)
        return found.shown_with(self._session.prefixes)

    def sparql(self, text: str) -> Result | bool | Change | list[Change]:
        """Answer a SPARQL 1.1 query over the triples, or carry out an update.

        `SELECT` returns a `Result` with None for unbound variables, `ASK` a truth
        value, `CONSTRUCT` and `DESCRIBE` facts of `triple`. An update returns its
        `Change`, or a list of them if it has several operations, which are applied all
        or not at all. Needs `pip install "evermat[sparql]"`.

        Raises:
            SparqlSyntaxError: the text is neither a query nor an update.
            UnsupportedSparqlError: the text uses an unsupported feature.
        """
        require_text(text, "a query")
        require_package("rdflib", "sparql")
        from evermat import sparql  # noqa: PLC0415  needs rdflib

        if sparql.is_update(text):
            return self._sparql_update(text)
        return self._sparql_query(text)

    @serialised
    def _sparql_query(self, text: str) -> Result | bool:
        from evermat.sparql import run_query  # noqa: PLC0415  needs rdflib

        prefixes = self._session.prefixes
        found = run_query(text, self._reader, prefixes)
        return found if isinstance(found, bool) else found.shown_with(prefixes)

    @serialised
    def _sparql_update(self, text: str) -> Change | list[Change]:
        from evermat.sparql import read_update  # noqa: PLC0415  needs rdflib

        self._slot.require_free()
        changes: list[Change] = []
        try:
            for operation in read_update(text, self._session.prefixes):
                request = operation.change(self._reader).request()
                changes.append(self._session.change(request))
        except BaseException:
            for change in reversed(changes):
                self._session.change(inverse(change))
            raise
        self._undoing.forget()
        for change in changes:
            if len(changes) == 1:
                self._undoing.note(change, (), ())
            self._subscriptions.notify(change)
        return changes[0] if len(changes) == 1 else changes

    @serialised
    def explain(
        self,
        fact: str,
        row: Sequence[object] | Mapping[str, object] | None = None,
        *,
        derivations: int = 0,
        limit: int | None = None,
    ) -> Explanation:
        """Explain why a fact holds, as in `kb.explain("reach(a, c)")`.

        The proof has least height, and is the same on every engine. If the fact does
        not hold, the explanation shows how far the rules that could derive it match.

        Args:
            fact: the fact, or its predicate.
            row: the arguments of the fact, if `fact` is its predicate; in order, or by
                the names of columns.
            derivations: the number of derivations of the fact to show.
            limit: the most rule instances to match.

        Raises:
            SearchLimitError: the limit was exceeded.
        """
        require_text(fact, "a fact")
        reader = self._reader
        known, prefixes = reader.catalogue, self._session.prefixes
        found = read_fact(fact, row, catalogue=known, prefixes=prefixes)
        return reader.explain(
            ExplainRequest(found, self.rules, prefixes, derivations, limit)
        )

    def validate(self, shapes: Graph | str | Path) -> Validation:
        """Validate all triples, derived ones included, against SHACL shapes.

        Needs `pip install "evermat[shacl]"`.

        Args:
            shapes: a file, or a graph of rdflib.

        Raises:
            ShapesError: the shapes cannot be read.
        """
        require_package("pyshacl", "shacl")
        from evermat.sparql.shapes import validate  # noqa: PLC0415  needs rdflib

        return validate(self.to_rdflib(), shapes)

    def to_rdflib(self, sort: Sort = "all") -> Graph:
        """Return the triples as an independent rdflib graph.

        A graph over the knowledge base itself is
        `rdflib.Graph(store=evermat.rdflib_store.EvermatStore(kb))`: it contains derived
        triples, and maintains them when it is changed.

        Args:
            sort: `"all"`, `"explicit"` or `"derived"`.
        """
        require_package("rdflib", "sparql")
        from evermat.sparql.graphs import make_graph  # noqa: PLC0415  needs rdflib

        triples = self.facts(TRIPLE, sort).to_terms()
        return make_graph(triples, self._session.prefixes)

    @serialised
    def contradictions(self, *, limit: int | None = None) -> list[Contradiction]:
        """Return the facts derived by rules with the head `false`, and by OWL axioms.

        Each has `arguments`, the constants it is about, and `explain()` returns its
        proof.

        Args:
            limit: the most facts to return.
        """
        return list(islice(self._session.contradictions, limit))

    @serialised
    def representatives(self) -> Result:
        """Return the constants that are equal to others, with their representatives.

        Empty if equality is not rewritten.
        """
        return Result(self._reader.representatives(), ("member", "representative"))

    @serialised
    def facts(
        self, predicate: str, sort: Sort = "all", *, limit: int | None = None
    ) -> Result:
        """Return the facts of a predicate: all, the explicit, or the only derived ones.

        Args:
            predicate: the predicate; `kb[predicate]` also returns all of its facts.
            sort: `"all"`, `"explicit"` or `"derived"`.
            limit: the most facts to return.
        """
        reader = self._reader
        known = reader.catalogue.require(predicate)
        check_sort(sort)
        found = reader.facts(known, sort).first(limit)
        return found.shown_with(self._session.prefixes)

    def __getitem__(self, predicate: str) -> Result:
        """Return the facts of a predicate."""
        return self.facts(predicate)

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the predicates."""
        return iter(self.predicates)

    def __contains__(self, predicate: object) -> bool:
        """Return whether rules or facts mention a predicate."""
        return predicate in self.predicates

    @serialised
    def __len__(self) -> int:
        """Return the number of facts of all predicates."""
        reader = self._reader
        return sum(reader.count(each) for each in reader.catalogue)

    def __bool__(self) -> bool:
        """Return true: a knowledge base without facts is true as well."""
        return True

    @serialised
    def count(self, predicate: str) -> int:
        """Return the number of facts of a predicate."""
        reader = self._reader
        return reader.count(reader.catalogue.require(predicate))

    @serialised
    def contains(
        self, predicate: str, row: Sequence[object] | Mapping[str, object]
    ) -> bool:
        """Return whether a fact holds; its values may be given by column names."""
        reader = self._reader
        known = reader.catalogue.require(predicate)
        values = row_in_order(row, known)
        if isinstance(values, tuple | list):
            reader.catalogue.check(predicate, len(values))
        return reader.contains(known, table_of_rows([values], known.arity))

    @serialised
    def counters(self, predicate: str) -> Result:
        """Return the facts of a predicate with the number of their derivations.

        `c_nr` counts nonrecursive rule instances, plus one if the fact is explicit;
        `c_r` counts recursive ones.
        """
        reader = self._reader
        return reader.counters(reader.catalogue.require(predicate))

    # ------------------------------------------------------------- properties

    @property
    def engine(self) -> str:
        """The name of the engine."""
        return self._engine.name

    @property
    def version(self) -> int | None:
        """The version of the state; None without a state."""
        state = self._lake_state
        return None if state is None else state.version

    @property
    def state(self) -> str | None:
        """The path or URI of the state; None without a state."""
        state = self._lake_state
        return None if state is None else state.place

    def last_batch(self, application: str) -> int | None:
        """Return the last batch of an application that was recorded with the state."""
        state = self._lake_state
        return None if state is None else state.last_batch(application)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules as written, one for each head."""
        return self._session.rules

    @property
    def predicates(self) -> Mapping[str, int]:
        """The arity of every predicate that rules or facts mention."""
        return dict(self._session.catalogue.arities)

    @property
    def catalogue(self) -> Catalogue:
        """The predicates, with the known properties of their columns."""
        return self._session.catalogue

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that rules have declared."""
        return dict(self._session.prefixes)

    @contextmanager
    def watched(self, monitor: Monitor) -> Iterator[None]:
        """Call a monitor during the queries in the block; it may stop them.

        Queries of other threads wait until the block ends. `maintenance.limits.Watch`
        is a monitor that enforces a budget.
        """
        with self.turn:
            self._engine.monitor = monitor
            try:
                yield
            finally:
                self._engine.monitor = None

    @serialised
    def stats(self) -> Stats:
        """Return numbers of rules and strata, and the sizes of each predicate."""
        sizes = self._reader.sizes()
        return {
            "engine": self.engine,
            "place": self._engine.place,
            "rules": len(self.rules),
            "strata": len(self._session.strata),
            "facts": sum(size["facts"] for size in sizes.values()),
            "explicit": sum(size["explicit"] for size in sizes.values()),
            "contradictions": len(self._session.contradictions),
            "predicates": sizes,
        }

    @serialised
    def explain_plan(self) -> str:
        """Describe the storage of facts and the plans of rules, with estimates.

        On Spark, it also shows the partitioning of facts, and the rules that run inside
        tasks.
        """
        session = self._session
        return plans_text(session.engine, session.strata, session.modules)

    @serialised
    def profile(self) -> Profile:
        """Measure each rule: time, instances, facts, and its slowest join.

        Every rule is applied once to all facts; this changes nothing.
        """
        from evermat.kb.profile import profile  # noqa: PLC0415  rarely needed

        return profile(self._session.materialisation)

    @serialised
    def audit(self) -> Audit:
        """Compare this with a materialisation from scratch; true if they are equal.

        Facts, explicit facts, counters and equal constants are compared. It needs as
        much memory as the knowledge base itself.
        """
        from evermat.kb.audit import audit  # noqa: PLC0415  rarely needed

        return audit(self, self.copy())

    # --------------------------------------------------------------- internals

    def _require_intact(self) -> None:
        """Refuse calls after an update that could neither be completed nor undone.

        Raises:
            TornError: with advice on how to recover.
        """
        if self._session.is_torn:
            raise TornError(has_state=self._lake_state is not None)

    def _recover(self) -> None:
        """Rebuild structures that an unexpected error may have left half built."""
        self._engine.recover()

    @property
    def _engine(self) -> Engine:
        return self._session.engine

    @property
    def _reader(self) -> Reader:
        return self._session.reader

    @property
    def _lake_state(self) -> LakeState | None:
        persistence = self._session.persistence
        return None if persistence is None else persistence.state

    @serialised
    def _change(
        self,
        request: Request,
        *,
        algorithm: str | None = None,
        batch: tuple[str, int] | None = None,
    ) -> Change:
        self._slot.require_free()
        return self._carry_out(request, algorithm=algorithm, batch=batch)

    @serialised
    def _commit(self, request: Request, *, algorithm: str | None) -> Change:
        """Carry out a transaction."""
        return self._carry_out(request, algorithm=algorithm)

    def _carry_out(
        self,
        request: Request,
        *,
        algorithm: str | None,
        batch: tuple[str, int] | None = None,
    ) -> Change:
        changes_rules = bool(request.add_rules or request.remove_rules)
        before = self.rules if changes_rules else ()
        with allowing(self._allow_paths) if self._allow_paths else nullcontext():
            change = self._session.change(request, algorithm=algorithm, batch=batch)
        self._undoing.note(change, before, self.rules if changes_rules else ())
        self._subscriptions.notify(change)
        return change


def _check_watchers(budget: object, progress: object) -> None:
    """Check arguments early that would fail in the middle of an update."""
    if budget is not None and not isinstance(budget, Budget):
        raise RequestError(
            f"a budget is no `{type(budget).__name__}`: {budget!r}",
            help="write evermat.Budget(seconds=…), for instance",
        )
    if progress is not None and not callable(progress):
        raise RequestError(
            f"progress must be a function, not {progress!r}",
        )


def _engine_of(engine: str | Engine, spark: SparkSession | None) -> Engine:
    if not isinstance(engine, str):
        if not hasattr(engine, "materialised"):
            raise UnknownEngineError(
                f"{engine!r} is neither an engine nor the name of one",
                help=f"use one of {', '.join(ENGINES)}",
            )
        return engine
    if spark is not None and engine in ENGINES and engine != "spark":
        raise RequestError(
            f"`spark=` is for the engine `spark`, not for `{engine}`",
            help='leave it out, or write engine="spark"',
        )
    return make_engine(engine, **({} if spark is None else {"session": spark}))


def _persistence(
    state: str | Path | LakeState,
    settings: tuple[CountersSetting, bool, str],
    options: Mapping[str, str] | None,
) -> Persistence:
    module = _persistence_module()
    opened: Persistence = module.open_persistence(state, settings, options)
    return opened


def _persistence_module() -> ModuleType:
    """Import the module for states, which needs an optional library."""
    from evermat.kb import persistence  # noqa: PLC0415  see above

    return persistence


def _request(
    insert: Mapping[str, object] | None,
    delete: Mapping[str, object] | None,
    replace: Mapping[str, object] | None,
    add_rules: RuleInput | Iterable[RuleInput] | None,
    remove_rules: RuleInput | Iterable[RuleInput] | None,
) -> Request:
    return Request(
        insert=by_predicate(insert),
        replace=by_predicate(replace),
        delete=by_predicate(delete),
        add_rules=listed(add_rules),
        remove_rules=listed(remove_rules),
    )
