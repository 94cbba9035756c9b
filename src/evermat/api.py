"""The knowledge base: rules, the facts they were given, and all that follows.

It wires the parts together and holds no algorithm: requests are checked by
`evermat.update_requests`, carried out by `evermat.maintenance` on an engine, and what
holds is read by `evermat.reading`.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Self, TypedDict

from evermat.algebra import Views, can_explain
from evermat.catalogue import Catalogue
from evermat.change import Change, check_sort
from evermat.columns import table_of_rows
from evermat.engine_abilities import can_stage, place_of, with_room
from evermat.engines import make_engine
from evermat.equality_change import expanded_outcome
from evermat.equality_modes import (
    asks_for_equality,
    check_equality,
    missing_axioms,
    require_rewriting,
    with_equality,
)
from evermat.explaining import read_fact
from evermat.explaining_contradictions import contradictions_proved
from evermat.lang.normalise import rule_key
from evermat.lang.syntax import TRIPLE
from evermat.maintenance.algorithms import REMATERIALISE
from evermat.maintenance.equality_materialisation import EqualityMaterialisation
from evermat.maintenance.materialisation import Materialisation
from evermat.questions import read_question
from evermat.rdf import read_rdf
from evermat.reading import Asked, Reader, reader_of
from evermat.result import MissingPackageError, Result
from evermat.rule_inputs import listed
from evermat.transaction import Slot, Transaction
from evermat.turns import in_turn
from evermat.update_requests import (
    Request,
    RequestError,
    by_predicate,
    check_request,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from types import ModuleType

    from pyspark.sql import SparkSession

    from evermat.algebra import Engine
    from evermat.change import Sort
    from evermat.equality_modes import Equality
    from evermat.explanation import Explanation
    from evermat.lake.state import LakeState
    from evermat.lang.syntax import Rule
    from evermat.maintenance.compiled_rules import RuleBook
    from evermat.maintenance.state import Outcome
    from evermat.maintenance.watch import Budget, Progress
    from evermat.persistence import Persistence
    from evermat.rule_inputs import RuleInput
    from evermat.update_requests import CheckedRequest


class Stats(TypedDict):
    """Sizes; those of a predicate are `facts`, `given`, `bytes` and `indexes`."""

    engine: str
    place: str
    rules: int
    strata: int
    facts: int
    given: int
    predicates: dict[str, dict[str, int]]


class KnowledgeBase:
    """Rules and facts, with the consequences kept up to date.

    Facts are given (*explicit*) or follow from rules (*derived*); a fact may be both.
    Every change returns a `Change` that says exactly which facts came and which left,
    and either happens as a whole or not at all.

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

    def __init__(  # noqa: PLR0913  all but the rules by name
        self,
        rules: RuleInput | Iterable[RuleInput] | None = None,
        *,
        engine: str | Engine = "embedded",
        algorithm: str = "auto",
        equality: Equality = "auto",
        counters: bool = True,
        modules: bool = True,
        budget: Budget | None = None,
        progress: Progress | None = None,
        spark: SparkSession | None = None,
        state: str | Path | LakeState | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        """Make a knowledge base.

        Args:
            rules: text, a `Path`, a `Program`, a `Rule`, or a list of these. Facts
                among them are explicit facts.
            engine: `"embedded"`, `"reference"`, or an engine object.
            algorithm: how updates are maintained unless they say otherwise; see
                `algorithms()`.
            equality: what `same_as` and `owl:sameAs` mean: `"off"`, `"axioms"`,
                `"rewrite"`, or `"auto"`, which is `"rewrite"` as soon as a rule or a
                fact is about equality.
            counters: keep the number of derivations of each fact, which the counting
                algorithms need. Not kept where equality is rewritten.
            modules: let rules that make a relation transitive, symmetric or reflexive
                be handled as closures, not instance by instance. What follows is the
                same, only sooner. Needs counters.
            budget: limits of every single update, and of the first materialisation.
            progress: is called after every round.
            spark: the session for `engine="spark"`; by default the active one.
            state: a path or URI where every update is kept. If there is a state, it
                is taken up where it was left, and becomes that of the given rules.
            storage_options: for places that need them, as `deltalake` takes them.

        Raises:
            EvermatError: the rules cannot be read or are not valid.
        """
        check_equality(equality)
        self._persistence: Persistence | None = None
        if state is not None:
            settings = (counters, modules, equality)
            self._persistence = _persistence(state, settings, storage_options)
        chosen = _engine_of(engine, spark)
        self._materialisation: Materialisation | EqualityMaterialisation = (
            EqualityMaterialisation(
                require_rewriting(chosen),
                modules=modules,
                budget=budget,
                progress=progress,
            )
            if equality == "rewrite" or self._is_kept_rewritten()
            else Materialisation(
                chosen,
                counters=counters,
                modules=modules,
                holding=state is None,
                budget=budget,
                progress=progress,
            )
        )
        self._materialisation.require_algorithm(algorithm)
        self._equality: Equality = equality
        self._algorithm = algorithm
        self._has_counters = counters
        self._has_modules = modules
        self._is_empty = True
        is_known = equality == "axioms"
        self._catalogue = with_equality(Catalogue()) if is_known else Catalogue()
        self._prefixes: Mapping[str, str] = {}
        self._slot = Slot()
        self.turn = RLock()
        if self._persistence is None or not self._resume(self._persistence, rules):
            self._carry_out(Request(add_rules=listed(rules)))

    @classmethod
    def open(  # noqa: PLR0913  all but the place by name
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
    ) -> Self:
        """Take up a state, with the rules and settings that it was left with.

        Args:
            state: where it is.
            version: an old version, which can be asked but not changed.
            engine: as for a new knowledge base, like the others.
            algorithm: how updates are maintained.
            budget: limits of every single update.
            progress: is called after every round.
            spark: the session for `engine="spark"`.
            storage_options: for places that need them.

        Raises:
            StateError: there is no state, or it cannot be read.
            MissingVersionError: there is no such version.
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
        )

    @in_turn
    def __repr__(self) -> str:
        facts = sum(size["facts"] for size in self._reader.sizes().values())
        rules = len(self.rules)
        return f"<KnowledgeBase on {self.engine}: {rules:,} rules, {facts:,} facts>"

    # ------------------------------------------------------------------ changes

    def load(
        self,
        data: Mapping[str, object] | None = None,
        *,
        rdf: str | Path | Iterable[str | Path] = (),
        base: str | None = None,
    ) -> Change:
        """Insert the facts of many predicates at once.

        Args:
            data: rows by predicate. Rows are tuples, a pandas, Polars or Arrow frame,
                or the `Path` of a CSV, TSV, Parquet or Arrow file.
            rdf: RDF files; their triples become facts of `triple`, which rules write
                as `[?s, ?p, ?o]`.
            base: what relative IRIs in RDF files are relative to.
        """
        request = Request(insert=by_predicate(data))
        files = [rdf] if isinstance(rdf, str | Path) else rdf
        for path in files:
            request.insert.setdefault(TRIPLE, []).append(read_rdf(path, base=base))
        return self._change(request)

    def insert(self, predicate: str, rows: object) -> Change:
        """Give facts; those that are given already are left alone.

        Args:
            predicate: any name, one that rules derive too.
            rows: tuples, a pandas, Polars or Arrow frame, or the `Path` of a file.
        """
        return self._change(Request(insert={predicate: [rows]}))

    def delete(self, predicate: str, rows: object) -> Change:
        """Withdraw given facts; rows that are not given are left alone.

        A fact that still follows from the rules goes on to hold.
        """
        return self._change(Request(delete={predicate: [rows]}))

    def update(
        self,
        *,
        insert: Mapping[str, object] | None = None,
        delete: Mapping[str, object] | None = None,
        add_rules: RuleInput | Iterable[RuleInput] | None = None,
        remove_rules: RuleInput | Iterable[RuleInput] | None = None,
        algorithm: str | None = None,
        batch: tuple[str, int] | None = None,
    ) -> Change:
        """Change facts and rules in one step.

        Deletions come before insertions: a row that is in both is given afterwards.

        Args:
            insert: rows to give, by predicate.
            delete: rows to withdraw, by predicate.
            add_rules: new rules; facts among them are inserted.
            remove_rules: rules to drop, in any spelling that means the same; facts
                among them are deleted.
            algorithm: for this update only; see `algorithms()`.
            batch: an application and the number of its batch, recorded in the same
                commit as the update; numbers of an application only go up.
        """
        request = _request(insert, delete, add_rules, remove_rules)
        return self._change(request, algorithm=algorithm, batch=batch)

    @in_turn
    def plan(
        self,
        *,
        insert: Mapping[str, object] | None = None,
        delete: Mapping[str, object] | None = None,
        add_rules: RuleInput | Iterable[RuleInput] | None = None,
        remove_rules: RuleInput | Iterable[RuleInput] | None = None,
        algorithm: str | None = None,
    ) -> Change:
        """What `update` with the same arguments would change, and what it would cost.

        The work is done and then undone, so that the answer is exact.
        """
        self._slot.require_free()
        checked = self._check(_request(insert, delete, add_rules, remove_rules))
        kept, algorithm = self._prepared(checked, algorithm)
        plan = partial(
            kept.plan,
            delete=checked.delete,
            insert=checked.insert,
            remove_rules=checked.remove_rules,
            add_rules=self._with_axioms(checked),
            algorithm=algorithm,
        )
        with self._contradictions_proved(kept, checked):
            outcome = with_room(kept.engine, plan)
        return self._report(outcome, checked.catalogue, applied=False)

    def transaction(self, *, algorithm: str | None = None) -> Transaction:
        """Several changes as one: `with kb.transaction() as tx: tx.insert(…)`."""
        return Transaction(self._slot, partial(self._change, algorithm=algorithm))

    @in_turn
    def materialise(self) -> Change:
        """Derive everything again from the given facts."""
        self._slot.require_free()
        kept = self._materialisation
        with self._announced(kept, self._catalogue, self._prefixes):
            outcome = with_room(kept.engine, kept.rematerialise)
        return self._report(outcome, self._catalogue)

    # ---------------------------------------------------------------- questions

    @in_turn
    def query(self, text: str, *, raw: bool = False) -> Result:
        """Answer a conjunction such as `reach(?x, 'c'), not blocked(?x), ?x != 'b'`.

        The columns are the variables, in the order in which they are first mentioned;
        variables that occur below `not` only are not among them. A question without
        variables has one empty row for yes and none for no.

        Args:
            text: the question.
            raw: do not multiply equal constants out: answers hold representatives.
        """
        reader = self._reader
        question = read_question(
            text, catalogue=reader.catalogue, prefixes=self._prefixes
        )
        return reader.answer(question, raw=raw)

    @in_turn
    def explain(
        self,
        fact: str,
        row: Sequence[object] | None = None,
        *,
        derivations: int = 0,
        limit: int | None = None,
    ) -> Explanation:
        """Why a fact holds: `kb.explain("reach(a, c)")`, or by predicate and row.

        The proof is one of least height, and the same wherever it is asked for. If the
        fact does not hold, the explanation says how far rules get that could derive it.

        Args:
            fact: the fact, or its predicate.
            row: the arguments of the fact, if only its predicate was named.
            derivations: show so many of all rule instances that derive the fact.
            limit: give up after so many rule instances.

        Raises:
            SearchLimitError: the limit was passed.
        """
        reader = self._reader
        known, prefixes = reader.catalogue, self._prefixes
        found = read_fact(fact, row, catalogue=known, prefixes=prefixes)
        return reader.explain(Asked(found, self.rules, prefixes, derivations, limit))

    @in_turn
    def representatives(self) -> Result:
        """The constants that are equal to others, each with what stands for it.

        Empty where equality is not rewritten.
        """
        return Result(self._reader.representatives(), ("member", "representative"))

    @in_turn
    def facts(self, predicate: str, sort: Sort = "all") -> Result:
        """The facts of a predicate: all, those given, or those only derived."""
        reader = self._reader
        known = reader.catalogue.require(predicate)
        check_sort(sort)
        return reader.facts(known, sort)

    @in_turn
    def count(self, predicate: str) -> int:
        """How many facts a predicate has."""
        reader = self._reader
        return reader.count(reader.catalogue.require(predicate))

    @in_turn
    def contains(self, predicate: str, row: Sequence[object]) -> bool:
        """Whether a fact holds."""
        reader = self._reader
        known = reader.catalogue.require(predicate)
        if isinstance(row, tuple | list):
            reader.catalogue.check(predicate, len(row))
        return reader.contains(known, table_of_rows([row], known.arity))

    @in_turn
    def counters(self, predicate: str) -> Result:
        """The facts of a predicate with the number of their derivations.

        `c_nr` counts nonrecursive rule instances, plus one if the fact is given;
        `c_r` counts recursive ones.
        """
        reader = self._reader
        return reader.counters(reader.catalogue.require(predicate))

    # ------------------------------------------------------------ what is there

    @property
    def engine(self) -> str:
        """The name of the engine."""
        return self._engine.name

    @property
    def version(self) -> int | None:
        """The version of the state; None where no state is kept."""
        return None if self._persistence is None else self._persistence.state.version

    @property
    def state(self) -> str | None:
        """Where the state is; None where no state is kept."""
        return None if self._persistence is None else self._persistence.state.place

    def last_batch(self, application: str) -> int | None:
        """The last batch of an application that was recorded with the state."""
        if self._persistence is None:
            return None
        return self._persistence.state.last_batch(application)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules as they were given, one for each head."""
        rules = self._materialisation.given_rules
        if self._equality != "axioms":
            return rules
        added = {rule_key(rule) for rule in missing_axioms(self._catalogue, ())}
        return tuple(rule for rule in rules if rule_key(rule) not in added)

    @property
    def predicates(self) -> Mapping[str, int]:
        """The arity of every predicate that rules or facts have mentioned."""
        return dict(self._catalogue.arities)

    @property
    def catalogue(self) -> Catalogue:
        """The predicates, with what is known of their columns."""
        return self._catalogue

    @in_turn
    def stats(self) -> Stats:
        """Sizes: rules, strata, and for each predicate its facts, bytes and indexes."""
        sizes = self._reader.sizes()
        return {
            "engine": self.engine,
            "place": place_of(self._engine),
            "rules": len(self.rules),
            "strata": len(self._materialisation.strata),
            "facts": sum(size["facts"] for size in sizes.values()),
            "given": sum(size["given"] for size in sizes.values()),
            "predicates": sizes,
        }

    @in_turn
    def explain_plan(self) -> str:
        """Where the facts are, and how each rule is run: join order, estimates.

        On Spark also how facts are divided, and which rules run inside tasks.
        """
        engine = self._engine
        everything = engine.materialised
        views = Views(positive=everything, negative=everything)
        lines = [f"facts: {place_of(engine)}"]
        if can_explain(engine):
            lines += engine.explain_layout()
        for stratum in self._materialisation.strata:
            lines.append(f"stratum {stratum.index}")
            if can_explain(engine):
                more = engine.explain_recursion(stratum.recursive.full)
                lines += [f"  {line}" for line in more]
            for query in stratum.rules.full.queries:
                steps = engine.explain(query, views)
                lines += [f"  {query.label}", *(f"    {step}" for step in steps)]
        return "\n".join(lines)

    # ------------------------------------------------------------------ wiring

    @property
    def _engine(self) -> Engine:
        return self._materialisation.engine

    @property
    def _reader(self) -> Reader:
        kept, catalogue = self._materialisation, self._catalogue
        return reader_of(kept, catalogue, counters=self._has_counters)

    def _check(self, request: Request) -> CheckedRequest:
        engine = self._engine
        return check_request(
            request,
            catalogue=self._catalogue,
            prefixes=self._prefixes,
            stage=engine.stage if can_stage(engine) else None,
        )

    @in_turn
    def _change(
        self,
        request: Request,
        *,
        algorithm: str | None = None,
        batch: tuple[str, int] | None = None,
    ) -> Change:
        self._slot.require_free()
        return self._carry_out(request, algorithm=algorithm, batch=batch)

    def _carry_out(
        self,
        request: Request,
        *,
        algorithm: str | None = None,
        batch: tuple[str, int] | None = None,
    ) -> Change:
        checked = self._check(request)
        kept, algorithm = self._prepared(checked, algorithm)
        with (
            self._announced(kept, checked.catalogue, checked.prefixes, batch),
            self._contradictions_proved(kept, checked),
        ):
            update = partial(
                kept.update,
                delete=checked.delete,
                insert=checked.insert,
                remove_rules=checked.remove_rules,
                add_rules=self._with_axioms(checked),
                algorithm=algorithm,
            )
            outcome = with_room(kept.engine, update)
        self._materialisation = kept
        self._catalogue = checked.catalogue
        self._prefixes = checked.prefixes
        self._is_empty = self._is_empty and not outcome.summary.inserted
        return self._report(outcome, self._catalogue)

    def _prepared(
        self, checked: CheckedRequest, algorithm: str | None
    ) -> tuple[Materialisation | EqualityMaterialisation, str]:
        """What carries a request out, and by which algorithm."""
        kept = self._materialisation
        usual = algorithm or self._usual_algorithm()
        is_first = (
            self._equality == "auto"
            and isinstance(kept, Materialisation)
            and asks_for_equality(checked)
        )
        if not is_first or not isinstance(kept, Materialisation):
            return kept, usual
        new = EqualityMaterialisation.taking_over(
            require_rewriting(kept.engine),
            kept.given_rules,
            modules=self._has_modules,
            budget=kept.budget,
            progress=kept.progress,
        )
        new.require_algorithm(self._algorithm)
        new.require_algorithm(usual)
        return new, REMATERIALISE

    def _contradictions_proved(
        self,
        kept: Materialisation | EqualityMaterialisation,
        checked: CheckedRequest,
    ) -> AbstractContextManager[None]:
        """Have errors tell why values would be equal by the rules of a request."""

        def rules() -> RuleBook:
            book, _ = kept.book.change(
                remove=checked.remove_rules, add=checked.add_rules
            )
            return book

        return contradictions_proved(rules, checked.prefixes)

    def _with_axioms(self, checked: CheckedRequest) -> tuple[Rule, ...]:
        if self._equality != "axioms":
            return checked.add_rules
        known = (*self._materialisation.given_rules, *checked.add_rules)
        return (*checked.add_rules, *missing_axioms(checked.catalogue, known))

    def _report(
        self, outcome: Outcome, catalogue: Catalogue, *, applied: bool = True
    ) -> Change:
        if outcome.cliques is not None:
            outcome = expanded_outcome(outcome, catalogue.arities)
        return Change(outcome, catalogue, applied=applied)

    @contextmanager
    def _announced(
        self,
        kept: Materialisation | EqualityMaterialisation,
        catalogue: Catalogue,
        prefixes: Mapping[str, str],
        batch: tuple[str, int] | None = None,
    ) -> Iterator[None]:
        """Have the update in the block written to the state, where one is kept."""
        if self._persistence is not None:
            self._persistence.announce(kept, catalogue, prefixes, batch)
            yield
            self._persistence.finish()
            return
        if batch is not None:
            raise RequestError(
                "a batch is recorded with the state, and there is none",
                help="make the knowledge base with `state=PATH`",
            )
        yield

    def _is_kept_rewritten(self) -> bool:
        """Whether there is a state in which equality is kept by rewriting."""
        return self._persistence is not None and self._persistence.rewrites

    def _resume(
        self,
        persistence: Persistence,
        rules: RuleInput | Iterable[RuleInput] | None,
    ) -> bool:
        """Take a state up; false if there is nothing to be taken up."""
        persistence.connect(self._materialisation)
        program = persistence.state.program
        if program is None:
            return False
        self._catalogue = program.catalogue()
        self._prefixes = program.prefixes
        sizes = self._reader.sizes().values()
        self._is_empty = not any(each["given"] for each in sizes)
        if rules is not None:
            request = persistence.difference(listed(rules), self.rules, self._prefixes)
            if request is not None:
                self._carry_out(request)
        return True

    def _usual_algorithm(self) -> str:
        """What an update uses that does not say.

        The first facts are materialised, whatever maintains them later; Counting goes
        all the way itself, because it refuses recursive rules.
        """
        is_first = self._is_empty and self._algorithm != "counting"
        return "auto" if is_first else self._algorithm


def _engine_of(engine: str | Engine, spark: SparkSession | None) -> Engine:
    if not isinstance(engine, str):
        return engine
    return make_engine(engine, **({} if spark is None else {"session": spark}))


def _persistence(
    state: str | Path | LakeState,
    settings: tuple[bool, bool, str],
    options: Mapping[str, str] | None,
) -> Persistence:
    module = _persistence_module()
    opened: Persistence = module.open_persistence(state, settings, options)
    return opened


def _persistence_module() -> ModuleType:
    """What keeps states; it needs a library that not everybody has."""
    try:
        from evermat import persistence  # noqa: PLC0415  see above
    except ImportError as error:
        raise MissingPackageError(
            f"a state on a lake needs `{error.name}`, which is not installed",
            help='install it with pip install "evermat[lake]"',
        ) from error
    return persistence


def _request(
    insert: Mapping[str, object] | None,
    delete: Mapping[str, object] | None,
    add_rules: RuleInput | Iterable[RuleInput] | None,
    remove_rules: RuleInput | Iterable[RuleInput] | None,
) -> Request:
    return Request(
        insert=by_predicate(insert),
        delete=by_predicate(delete),
        add_rules=listed(add_rules),
        remove_rules=listed(remove_rules),
    )
