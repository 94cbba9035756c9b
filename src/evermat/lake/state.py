"""The state of a knowledge base on a lake: restored on opening, updated on commits.

Every update is one commit. Before an engine changes its contents, it announces the
changes; these are written to files, and committed. Only then does the engine proceed.
So the lake and the memory have the same contents, or the update failed and neither has
changed.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from evermat.engines.spark.dictionary import Dictionary
from evermat.engines.spark.task_files import counted
from evermat.lake import on_spark, snapshots
from evermat.lake.errors import (
    BatchError,
    ReadOnlyStateError,
    StateError,
    StateSettingsError,
    no_state,
)
from evermat.lake.layout import (
    CLIQUES,
    FACTS,
    LEDGER,
    PROGRAM,
    RELATION,
    STANDS_FOR,
    TERMS,
    width_of,
)
from evermat.lake.log import WRITER
from evermat.lake.rows import (
    clique_changes,
    decoded,
    encoded,
    files_to_merge,
    split_by_relation,
    stored_terms,
    summed_facts,
)
from evermat.lake.table import StateTable
from evermat.lang.catalogue import Catalogue, Predicate
from evermat.lang.parser import parse_rules
from evermat.lang.syntax import canonical, is_auxiliary

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evermat.algebra import Engine, StoredChange
    from evermat.lake.layout import DataFile
    from evermat.lang.syntax import Rule
    from evermat.maintenance.counting import CountersSetting
    from evermat.maintenance.driver import Entry, NewCliques, NewRules


# ------------------------------------------------------------------------- the program

FORMAT = 1
"""Incremented when states are written that earlier versions cannot read."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings by which the facts of a state are maintained, which are fixed.

    Attributes:
        claimed: the rules whose instances are not counted, because modules evaluate
            them; in canonical form, since the spelling of rules varies.
        rewrites: whether facts are stored by representatives; with `equality="auto"`
            from the first equality on.
    """

    counters: CountersSetting = True
    modules: bool = True
    equality: str = "auto"
    claimed: tuple[str, ...] = ()
    rewrites: bool = False


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """The rules, predicates and settings of a version."""

    rules: tuple[str, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    prefixes: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = Settings()

    def parsed_rules(self) -> tuple[Rule, ...]:
        """Return the rules, as the user wrote them.

        They have no source positions: there is no file that contains all of them.
        """
        rules = parse_rules("\n".join(self.rules))
        return tuple(replace(rule, span=None) for rule in rules)

    def catalogue(self) -> Catalogue:
        """Return the predicates."""
        return Catalogue({each.name: each for each in self.predicates})

    def arities(self) -> dict[str, int]:
        """Return the number of arguments of each predicate."""
        return {each.name: each.arity for each in self.predicates}

    def text(self) -> str:
        """Return the program as JSON."""
        return json.dumps({"format": FORMAT, **asdict(self)})


def read_program(text: str, place: str) -> StoredProgram:
    """Return a program from its JSON."""
    doing = f"read the program of the state at `{place}`"
    try:
        data: dict[str, Any] = json.loads(text)
        found = data["format"]
        if found != FORMAT:
            raise StateError(
                doing,
                f"it has format {found}, and this is evermat for format {FORMAT}",
                help="use the version of evermat that wrote it, or a newer one",
            )
        return StoredProgram(
            rules=tuple(data["rules"]),
            predicates=tuple(
                Predicate(
                    each["name"],
                    each["arity"],
                    tuple(each["columns"]),
                    tuple(each["types"]),
                    each["has_names"],
                )
                for each in data["predicates"]
            ),
            prefixes=data["prefixes"],
            settings=Settings(
                **{**data["settings"], "claimed": tuple(data["settings"]["claimed"])}
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(doing, f"it is damaged ({error})") from error


# --------------------------------------------------------------------------- the state

Batch = tuple[str, int]
"""The name of an application, and the number of one of its batches."""
_COUNTED = (RELATION, "holds")
"""The columns by which rows of a change are counted: relation, and added or removed."""


class LakeState:
    """A version of a state, and the next commit.

    Attributes:
        program: the rules, predicates and settings of the version; None for a state
            without versions.
    """

    def __init__(self, table: StateTable, *, is_old: bool = False) -> None:
        self._table = table
        self._is_old = is_old
        self._dictionary = Dictionary()
        self._program_file: DataFile | None = None
        self.program: StoredProgram | None = None
        self._expected: tuple[Catalogue, Mapping[str, str], Settings] | None = None
        self._batch: Batch | None = None
        self._entries: dict[str, list[str]] = {}
        self._is_new_ledger = False
        self._changed = self._saved = 0
        """The number of rows changed since the last snapshot, and its version."""
        files = table.files(PROGRAM)
        if files:
            self._program_file = files[0]
            text = table.read(files[0])["text"][0].as_py()
            self.program = read_program(text, table.place)

    @property
    def version(self) -> int:
        """The version that was opened, or that the last update created."""
        return self._table.version

    @property
    def place(self) -> str:
        """The path or URI of the state."""
        return self._table.place

    @property
    def is_ahead(self) -> bool:
        """Whether there may be a version that is not in memory."""
        return self._table.is_ahead

    @property
    def rows(self) -> int:
        """The number of rows of facts, an upper bound for the number of facts."""
        return sum(file.rows for file in self._table.files(FACTS))

    def last_batch(self, application: str) -> int | None:
        """Return the last batch of an application that this version records."""
        return self._table.last_batch(application)

    # ----------------------------------------------------------------------- ledger

    def ledger(self, name: str) -> list[str]:
        """Return the entries of a ledger, up to this version."""
        entries: list[str] = []
        for file in self._table.files(LEDGER):
            rows = self._table.read(file)
            entries += rows.filter(pc.equal(rows[RELATION], name))["text"].to_pylist()
        return entries

    def enter(self, entries: Mapping[str, list[str]], *, anew: bool = False) -> None:
        """Add entries to ledgers with the next commit.

        Args:
            entries: texts by ledger; empty to cancel earlier calls.
            anew: empty all ledgers first.
        """
        self._entries = {name: texts for name, texts in entries.items() if texts}
        self._is_new_ledger = anew and bool(self._table.files(LEDGER))

    def _written_ledger(self) -> list[DataFile]:
        texts = [(name, text) for name, some in self._entries.items() for text in some]
        if not texts:
            return []
        names, entries = zip(*texts, strict=True)
        rows = pa.table({RELATION: list(names), "text": list(entries)})
        return [self._table.write(LEDGER, rows)]

    # -------------------------------------------------------------------- restoring

    def restore(self, engine: Engine) -> int:
        """Restore the facts of the version in an empty engine.

        Args:
            engine: an engine with the relations of all rules and predicates declared.

        Returns:
            The number of rule instances counted.
        """
        on_spark.offer_place(engine, self.place)
        own = on_spark.dictionary_of(engine)
        if own is not None:
            self._dictionary = own
        files = self._table.files(FACTS)
        instances = self._mapped(engine)
        if instances is None:
            instances = self._read(engine, files)
            self._changed = sum(file.rows for file in files)
        self._dictionary.unsaved = []
        return instances

    def _mapped(self, engine: Engine) -> int | None:
        """Map the latest snapshot into an engine, and apply later changes."""
        if self.rows < snapshots.LEAST_ROWS:
            return None
        on_spark.make_room(engine, self.rows)
        if not snapshots.can_map(engine):
            return None
        snapshot = snapshots.newest(self._table)
        if snapshot is None or snapshot.rows * snapshots.WORTH > self.rows:
            return None
        self._dictionary.take_up(*snapshots.stored_terms(snapshot.arrays))
        instances = engine.map_arrays(snapshot.arrays)
        for rows in snapshot.terms:
            self._dictionary.add(rows["id"].to_numpy(), stored_terms(rows))
        facts = summed_facts(snapshot.facts)
        for name, table in self._by_relation(facts, engine.relations()):
            engine.apply_numbers(name, table)
        self._changed, self._saved = snapshot.rows, snapshot.version
        return max(instances + on_spark.instances_of(facts), 0)

    def _read(self, engine: Engine, files: Sequence[DataFile]) -> int:
        """Read all facts into an engine."""
        terms = self._table.files(TERMS)
        if on_spark.should_read_terms(engine, terms):
            on_spark.restore_terms(engine, self._table, terms)
        else:
            for file in terms:
                rows = self._table.read(file)
                self._dictionary.add(rows["id"].to_numpy(), stored_terms(rows))
        if on_spark.should_read(engine, files):
            return on_spark.restore(engine, self._table, files)
        facts = summed_facts([self._table.read(file) for file in files])
        engine.reinstate(self._by_relation(facts, engine.relations()))
        return max(on_spark.instances_of(facts), 0)

    def save(self, engine: Engine, *, is_last: bool = False) -> None:
        """Write a snapshot, if the engine supports it and it is worth it.

        Args:
            engine: an engine with the facts of this version.
            is_last: whether the state will be opened again before it changes, so that
                several versions justify a snapshot, however small their changes.
        """
        rows, versions = self.rows, self.version - self._saved
        is_worth_it = self._changed * snapshots.WORTH > rows
        is_worth_it |= is_last and versions >= snapshots.WORTH
        if rows < snapshots.LEAST_ROWS or not is_worth_it or self._is_old:
            return
        if snapshots.can_map(engine) and snapshots.save(
            self._table, engine, self._dictionary
        ):
            self._changed, self._saved = 0, self.version

    def restore_cliques(self) -> pa.Table:
        """Return constants that are not their own representatives, with these.

        The facts must have been restored.
        """
        tables = [self._table.read(file) for file in self._table.files(CLIQUES)]
        return decoded(summed_facts(tables), self._dictionary, 2).select([0, 1])

    def _by_relation(
        self, facts: pa.Table, arities: Mapping[str, int]
    ) -> Iterator[tuple[str, pa.Table]]:
        for relation, rows in split_by_relation(facts):
            if relation not in arities:
                raise StateError(
                    f"restore the state at `{self.place}`",
                    f"nothing is known about the relation `{relation}`",
                )
            yield relation, decoded(rows, self._dictionary, arities[relation])

    def start(self, engine: Engine) -> None:
        """Start with an engine without facts, as there is no version yet."""
        on_spark.offer_place(engine, self.place)
        own = on_spark.dictionary_of(engine)
        if own is not None:
            self._dictionary = own
        self._dictionary.unsaved = []

    # ---------------------------------------------------------------------- writing

    @property
    def is_read_only(self) -> bool:
        """Whether this is an earlier version."""
        return self._is_old

    def require_writable(self) -> None:
        """Raise an error if this is an earlier version."""
        if self._is_old:
            raise ReadOnlyStateError(self.version)

    def expect(
        self,
        *,
        catalogue: Catalogue,
        prefixes: Mapping[str, str],
        settings: Settings,
        batch: Batch | None,
    ) -> None:
        """Announce the next update's properties, apart from facts and rules.

        Raises:
            ReadOnlyStateError: this is an earlier version.
            BatchError: the batch was committed before.
        """
        self.require_writable()
        if batch is not None:
            self._require_news(batch)
        self._expected = (catalogue, prefixes, settings)
        self._batch = batch

    def _require_news(self, batch: Batch) -> None:
        """Refuse a batch that is not valid, or that was committed before."""
        match batch:
            case (str(application), int(number)) if application and number >= 0:
                is_batch = application != WRITER
            case _:
                is_batch = False
        if not is_batch:
            raise BatchError(
                f"{batch!r} cannot be a batch",
                help='give the name of the application and a number: ("orders", 17)',
            )
        last = self.last_batch(application)
        if last is not None and number <= last:
            raise BatchError(
                f"batch {number} of `{application}` is no news, the last is {last}",
                help="ask `kb.last_batch` and skip what was committed",
            )

    def write(self, change: StoredChange, entry: Entry) -> None:
        """Commit the changes that an engine is about to make, if there are any.

        Args:
            change: the differences of the numbers of facts.
            entry: the other changes.
        """
        table = self._table
        add: list[DataFile] = []
        remove: list[DataFile] = []
        if on_spark.is_large(change):
            new, counts = on_spark.write(change, table, _COUNTED)
        else:
            facts = self._encoded(change)
            counts = Counter(counted(facts, _COUNTED))
            new = [table.write(FACTS, facts)] if facts.num_rows else []
        new += self._written_cliques(entry.cliques)
        program = self._next_program(entry.rules)
        ledger = self._written_ledger()
        is_noted = bool(ledger) or self._is_new_ledger or self._batch is not None
        if not new and program == self.program and not is_noted:
            table.require_unchanged()
            return  # new constants are written with the facts that mention them
        add += [*new, *ledger]
        if self._is_new_ledger:
            remove += table.files(LEDGER)
        terms = self._dictionary.unsaved_terms()
        if terms.num_rows:
            add.append(table.write(TERMS, terms))
        add += on_spark.write_terms(self._dictionary, table)
        program_file = self._program_file
        if program != self.program:
            text = pa.table({"text": [program.text()]})
            program_file = table.write(PROGRAM, text)
            add.append(program_file)
            remove += table.files(PROGRAM)
        parts = [FACTS, CLIQUES, TERMS, *([] if self._is_new_ledger else [LEDGER])]
        for part in parts:
            merged, old = self._merged(part, change)
            add += merged
            remove += old
        info = {
            **_added_and_removed(counts),
            "changes": [file.path for file in new],
            "batch": list(self._batch) if self._batch else None,
        }
        table.commit(add, remove, info=info, batch=self._batch)
        self._changed += sum(file.rows for file in new)
        self._dictionary.unsaved = []
        on_spark.terms_are_saved(self._dictionary)
        self.enter({})
        self.program, self._program_file = program, program_file

    def _written_cliques(self, cliques: NewCliques | None) -> list[DataFile]:
        """Write a file with the old and new representatives of constants."""
        if cliques is None:
            return []
        changes = {STANDS_FOR: clique_changes(cliques)}
        return [self._table.write(CLIQUES, encoded(changes, self._dictionary))]

    def finish(self, engine: Engine) -> None:
        """Record that the committed changes are complete in an engine as well."""
        self._table.finish()
        self.save(engine)

    def _next_program(self, rules: NewRules | None) -> StoredProgram:
        known = self.program or StoredProgram()
        if self._expected is None:
            raise StateSettingsError("an update was not announced to its state")
        catalogue, prefixes, settings = self._expected
        texts, claimed = known.rules, known.settings.claimed
        if rules is not None:
            texts = tuple(str(rule) for rule in rules.written)
            claimed = tuple(sorted(str(canonical(rule)) for rule in rules.claimed))
        return StoredProgram(
            rules=texts,
            predicates=tuple(catalogue),
            prefixes=dict(prefixes),
            settings=replace(settings, claimed=claimed),
        )

    def _encoded(self, change: StoredChange) -> pa.Table:
        """Return the rows for a change that is on the driver."""
        ready = on_spark.local_table(change)
        if ready is None:
            facts = {name: change.read(name) for name in sorted(change.relations())}
            ready = encoded(facts, self._dictionary)
        self._table.widen(width_of(ready.column_names))
        return ready

    def _merged(
        self, part: str, change: StoredChange
    ) -> tuple[list[DataFile], list[DataFile]]:
        """Merge files; return the new ones and those they replace."""
        table = self._table
        old = files_to_merge(table.files(part))
        if not old:
            return [], []
        is_summed = part in {FACTS, CLIQUES}
        if part != LEDGER and on_spark.should_merge(change, old):
            return on_spark.merge(change, table, part, old), old
        tables = [table.read(file) for file in old]
        rows = summed_facts(tables) if is_summed else pa.concat_tables(tables)
        return [table.write(part, rows, is_change=False)], old


def open_state(
    place: str | Path,
    *,
    version: int | None = None,
    options: Mapping[str, str] | None = None,
    must_exist: bool = False,
) -> LakeState:
    """Open the state at a place.

    Args:
        place: a path or a URI. An empty state is created if there is none.
        version: an earlier version, which cannot be changed.
        options: options for remote storage, in the form of `deltalake`.
        must_exist: refuse to create a state.
    """
    table = StateTable.open(place, version=version, options=options)
    if table is None:
        if must_exist or version is not None:
            raise no_state(place)
        table = StateTable.create(place, options)
    is_old = False
    if version is not None:
        is_old = table.log.latest() != version
    return LakeState(table, is_old=is_old)


def _added_and_removed(
    counts: Mapping[tuple[object, ...], int],
) -> dict[str, dict[str, int]]:
    """Return the numbers of facts added and removed by relation, from `_COUNTED`."""
    found: dict[str, dict[str, int]] = {"added": {}, "removed": {}}
    words = {1: "added", -1: "removed"}
    for (relation, holds), number in sorted(counts.items(), key=str):
        name = str(relation)
        if holds in words and not is_auxiliary(name):
            found[words[holds]][name] = number
    return found
