"""The exact changes made by an update, and their cost.

With equality, the engine stores representatives only: a stored fact represents all
facts that differ from it in equal constants. An update may change which ones. In that
case the facts that were represented before and after are compared when the changes are
read.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, Literal, NoReturn, SupportsIndex, get_args

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import (
    empty_table,
    joined_tables,
    rows_without,
    rows_without_columns,
    table_of_rows,
    term_table,
    term_texts,
)
from evermat.errors import EvermatError
from evermat.lang.equality import OWL_SAME_AS
from evermat.lang.printer import Printer
from evermat.lang.syntax import SAME_AS, TRIPLE, is_auxiliary
from evermat.results.result import Result, html_table, is_distant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evermat.algebra import Snapshot
    from evermat.algebra.engine import DistantRows
    from evermat.algebra.equality import Representatives
    from evermat.lang.catalogue import Catalogue
    from evermat.maintenance.update import Outcome, Report


Sort = Literal["all", "explicit", "derived"]
"""Which facts are meant: all, explicit ones, or those that are only derived."""


class UnknownSortError(EvermatError, ValueError):
    """A sort of facts that does not exist."""

    code: ClassVar[str] = "EM558"


class UncopiableError(EvermatError, TypeError):
    """An object that cannot be copied or pickled."""

    code: ClassVar[str] = "EM563"

    def __init__(self, given: object, instead: str) -> None:
        name = type(given).__name__
        super().__init__(f"a {name} cannot be copied or pickled", help=instead)


def check_sort(sort: object) -> None:
    """Reject a sort that does not exist."""
    if sort not in get_args(Sort):
        raise UnknownSortError(
            f"there is no sort of facts {sort!r}",
            help='use "all", "explicit" or "derived"',
        )


class Change:
    """The net effect of an update, or of a planned one.

    Attributes:
        applied: whether it has been applied; false for results of `kb.plan`.
        contradictions: the numbers of added and removed contradictions.

    >>> import evermat
    >>> kb = evermat.KnowledgeBase("friend(?y, ?x) :- friend(?x, ?y) .")
    >>> change = kb.insert("friend", [("ann", "bob")])
    >>> change.added("friend", "derived").to_list()
    [('bob', 'ann')]
    >>> change
    <Change friend +2>
    """

    def __init__(
        self,
        outcome: Outcome,
        catalogue: Catalogue,
        *,
        asked: Catalogue | None = None,
        applied: bool = True,
        contradictions: tuple[int, int] = (0, 0),
    ) -> None:
        """Wrap the outcome of an update.

        Args:
            outcome: the outcome.
            catalogue: the predicates that are reported.
            asked: the predicates that can be read, if these are more.
            applied: whether it has been applied.
            contradictions: the numbers of added and removed contradictions.
        """
        self.applied = applied
        self.contradictions = contradictions
        self._outcome = outcome
        self._catalogue = catalogue
        self._asked = catalogue if asked is None else asked

    @property
    def report(self) -> Report:
        """The algorithm, and for each stratum its rounds, work and seconds."""
        return self._outcome.report

    @property
    def predicates(self) -> tuple[str, ...]:
        """The names of the predicates that gained or lost facts, sorted."""
        return tuple(self.sizes)

    @property
    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """The numbers of facts added and removed, by predicate that changed."""
        added, removed = (
            self._outcome.added.relations(),
            self._outcome.removed.relations(),
        )
        names = sorted(name for name in {*added, *removed} if name in self._catalogue)
        return {name: (added.get(name, 0), removed.get(name, 0)) for name in names}

    @property
    def total(self) -> tuple[int, int]:
        """The total numbers of facts added and removed."""
        added, removed = map(sum, zip(*self.sizes.values(), (0, 0), strict=True))
        return added, removed

    @property
    def explicit_sizes(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """How many facts of each predicate became explicit, or explicit no longer."""
        outcome, known = self._outcome, self._asked
        gained, lost = (
            {name: size for name, size in facts.relations().items() if name in known}
            for facts in (outcome.explicit_added, outcome.explicit_removed)
        )
        return gained, lost

    @property
    def explicit_size(self) -> int:
        """The number of facts that became explicit or are no longer explicit."""
        summary = self._outcome.summary
        return summary.inserted + summary.deleted

    def is_empty(self) -> bool:
        """Return whether no fact was added or removed."""
        return not self.sizes

    def added(self, predicate: str, sort: Sort = "all") -> Result:
        """Return the facts that hold now and did not before.

        Args:
            predicate: the predicate they belong to.
            sort: all of them, only explicit ones, or only derived ones.
        """
        outcome = self._outcome
        return self._read(predicate, outcome.added, outcome.explicit_added, sort)

    def removed(self, predicate: str, sort: Sort = "all") -> Result:
        """Return the facts that held before and not now; `sort` is as for `added`."""
        outcome = self._outcome
        return self._read(predicate, outcome.removed, outcome.explicit_removed, sort)

    def inserted(self, predicate: str) -> Result:
        """Return the facts that became explicit, whether or not they held before."""
        return self._read(predicate, self._outcome.explicit_added, None, "all")

    def deleted(self, predicate: str) -> Result:
        """Return the facts that are no longer explicit, even if they still hold."""
        return self._read(predicate, self._outcome.explicit_removed, None, "all")

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table of the added and removed facts of all predicates.

        Its columns are `predicate`, `change` (`added` or `removed`) and `fact`, the
        fact in the syntax of programs.
        """
        schema = [(name, pa.string()) for name in ("predicate", "change", "fact")]
        parts = [pa.table([[], [], []], schema=pa.schema(schema))]
        printer = Printer({})
        for name in self.predicates:
            for kind, facts in (
                ("added", self.added(name)),
                ("removed", self.removed(name)),
            ):
                begin = pa.scalar(f"{printer.predicate(name)}(")
                columns = [term_texts(each) for each in facts.to_terms().columns]
                inside = pc.binary_join_element_wise(*columns, ", ") if columns else ""
                texts = pc.binary_join_element_wise(begin, inside, ")", "")
                if not columns:
                    texts = pa.repeat(texts, len(facts))
                parts.append(
                    pa.table(
                        [
                            pa.repeat(name, len(facts)),
                            pa.repeat(kind, len(facts)),
                            texts,
                        ],
                        schema=pa.schema(schema),
                    )
                )
        return pa.concat_tables(parts)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows of `to_arrow` through Arrow's C interface.

        Args:
            requested_schema: the types that the reader prefers.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _read(
        self, name: str, facts: Snapshot, explicit: Snapshot | None, sort: Sort
    ) -> Result:
        predicate = self._asked.require(name)
        check_sort(sort)
        chosen = None if sort == "all" else explicit
        rows = _where_they_are(facts, chosen, name, sort)
        if rows is None:
            rows = read_relation(facts, name, predicate.arity)
            if chosen is not None:
                explicit = read_relation(chosen, name, predicate.arity)
                rows = split(rows, explicit, sort)
        return Result(rows, predicate.columns, predicate=predicate.name)

    def __repr__(self) -> str:
        parts = [
            " ".join(
                [name, *[f"+{added}"] * bool(added), *[f"-{removed}"] * bool(removed)]
            )
            for name, (added, removed) in self.sizes.items()
        ]
        return f"<{self._title()} {', '.join(parts) or 'nothing'}>"

    def _repr_html_(self) -> str:
        """Return the numbers of added and removed facts as a table for notebooks."""
        sizes = self.sizes
        rows = [(name, added, removed) for name, (added, removed) in sizes.items()]
        names = ("predicate", "came", "left") if sizes else ()
        title = self._title() if sizes else f"{self._title()}: nothing"
        return html_table(title, names, rows)

    def _title(self) -> str:
        return "Change" if self.applied else "Planned change"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled: the engine has the facts."""
        raise UncopiableError(self, "keep what `added` and `removed` return")


def _where_they_are(
    facts: Snapshot, explicit: Snapshot | None, name: str, sort: Sort
) -> DistantRows | None:
    """Return the distributed rows of a snapshot, if they are too many to collect."""
    if not is_distant(facts) or not facts.is_large(name):
        return None
    rows = facts.distant(name)
    if explicit is None:
        return rows
    if not is_distant(explicit):
        return None
    if not explicit.relations().get(name):
        return rows if sort == "derived" else None
    return rows.split(explicit.distant(name), common=sort == "explicit")


def distant_relation(facts: Snapshot, name: str) -> DistantRows | None:
    """Return the distributed rows of a relation, if they are many."""
    return _where_they_are(facts, None, name, "all")


def read_relation(facts: Snapshot, name: str, arity: int) -> pa.Table:
    """Return the rows of a relation in a snapshot, an empty table if there are none."""
    count = facts.relations().get(name, 0)
    if not arity:
        return rows_without_columns(count)
    if not count:
        return empty_table(arity)
    return facts.read(name)


def split(table: pa.Table, explicit: pa.Table, sort: Sort) -> pa.Table:
    """Return the rows of a table that are, or are not, among the explicit ones."""
    if not table.num_columns:
        keep = bool(explicit.num_rows) == (sort == "explicit")
        return table if keep else table.slice(0, 0)
    is_explicit = pc.is_in(row_keys(table), value_set=row_keys(explicit))
    return table.filter(is_explicit if sort == "explicit" else pc.invert(is_explicit))


def row_keys(table: pa.Table) -> pa.Array:
    """Return a string for each row; strings of different rows are different.

    Each value is preceded by its length, so that no value can look like two.
    """
    parts = []
    for column in table.columns:
        kind = pc.cast(pc.struct_field(column, [0]), pa.string())
        text = pc.struct_field(column, [1])
        length = pc.cast(pc.binary_length(text), pa.string())
        parts.append(pc.binary_join_element_wise(kind, length, text, ":"))
    keys = pc.binary_join_element_wise(*parts, ";")
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


# --------------------------------------------------------------------- equality changes


def expanded_outcome(outcome: Outcome, arities: Mapping[str, int]) -> Outcome:
    """Return an outcome whose changes are those of all represented facts.

    Args:
        outcome: changes of representatives.
        arities: the predicates that can be read.
    """
    change = outcome.cliques
    if change is None:
        return outcome
    stayed = () if change.stayed is None else (change.stayed,)
    old = Side((change.lost, *stayed), change.before, arities)
    new = Side((change.gained, *stayed), change.after, arities)
    return replace(outcome, removed=Gone(old, new), added=Gone(new, old))


class Side:
    """The facts that some representatives represent at one time.

    Equalities between different constants are reported as `same_as` facts and as
    triples, if these predicates can be read; equalities of a constant with itself are
    omitted.

    Args:
        facts: the facts, in disjoint parts.
        representatives: the equal constants.
        arities: the predicates that can be read.
    """

    def __init__(
        self,
        facts: Sequence[Snapshot],
        representatives: Representatives,
        arities: Mapping[str, int],
    ) -> None:
        self.facts = facts
        self.representatives = representatives
        self.arities = arities
        self._tables: dict[str, pa.Table] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the predicates that have facts."""
        every = chain.from_iterable(part.relations() for part in self.facts)
        names = {name for name in every if not is_auxiliary(name)}
        if not self.representatives.is_identity():
            names |= {SAME_AS, TRIPLE} & self.arities.keys()
        return frozenset(names)

    def size(self, name: str) -> int:
        """Return the number of facts of a predicate."""
        if name in {SAME_AS, TRIPLE}:
            return int(self.table(name).num_rows)
        return self.representatives.expanded_size(self._normal(name))

    def _normal(self, name: str) -> pa.Table:
        arity = self.arities[name]
        return joined_tables([read_relation(part, name, arity) for part in self.facts])

    def table(self, name: str) -> pa.Table:
        """Return all facts of a predicate."""
        if name not in self._tables:
            table = self.representatives.expanded(_plain(name, self._normal(name)))
            if name in {SAME_AS, TRIPLE}:
                both = (table, self._equalities(name))
                table = joined_tables([term_table(each) for each in both])
            self._tables[name] = table
        return self._tables[name]

    def _equalities(self, name: str) -> pa.Table:
        cliques = self.representatives.cliques()
        is_head = pc.equal(row_keys(cliques.select([0])), row_keys(cliques.select([1])))
        heads = cliques.filter(is_head)
        pairs = self.representatives.expanded(heads)
        same = pc.equal(row_keys(pairs.select([0])), row_keys(pairs.select([1])))
        pairs = pairs.filter(pc.invert(same))
        if name == SAME_AS:
            return pairs
        middle = table_of_rows([(OWL_SAME_AS,)] * pairs.num_rows, 1).column(0)
        return pa.table(
            [pairs.column(0), middle, pairs.column(1)], names=["0", "1", "2"]
        )


class Gone:
    """A `Snapshot` of the facts of one time that do not hold at another."""

    def __init__(self, there: Side, missing: Side) -> None:
        self._there = there
        self._missing = missing
        self._tables: dict[str, pa.Table] = {}

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        there, missing = self._there, self._missing
        sizes = {
            name: there.size(name)
            if name not in missing.names
            else self.read(name).num_rows
            for name in sorted(there.names)
        }
        return {name: size for name, size in sizes.items() if size}

    def relations(self) -> Mapping[str, int]:
        """Return the number of facts of each predicate that has any."""
        return self._sizes

    def read(self, relation: str) -> pa.Table:
        """Return the facts of a predicate."""
        if relation not in self._tables:
            self._tables[relation] = self._difference(relation)
        return self._tables[relation]

    def _difference(self, name: str) -> pa.Table:
        table = self._there.table(name)
        if name not in self._missing.names or not table.num_rows:
            return table
        other = self._missing.table(name)
        if not table.num_columns:
            return table.slice(0, max(0, table.num_rows - other.num_rows))
        is_there = pc.is_in(row_keys(table), value_set=row_keys(other))
        return table.filter(pc.invert(is_there))


def _plain(name: str, table: pa.Table) -> pa.Table:
    """Return a table without equalities, which are reported separately."""
    if name == SAME_AS:
        return table.slice(0, 0)
    return rows_without(table, [{1: OWL_SAME_AS}]) if name == TRIPLE else table
