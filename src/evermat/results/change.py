"""What an update changed, exactly, and what it cost.

What an update changed, exactly, and what it cost.

Changes in terms of all facts, where the engine holds representatives only.

A fact of the engine stands for all facts that differ from it in equal constants. An
update may change which ones: then the facts that it stood for before are compared with
those that facts stand for now, when they are read.
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
    """A sort of facts that there is not."""

    code: ClassVar[str] = "EM558"


class UncopiableError(EvermatError, TypeError):
    """Something that cannot be copied or pickled."""

    code: ClassVar[str] = "EM563"

    def __init__(self, given: object, instead: str) -> None:
        name = type(given).__name__
        super().__init__(f"a {name} cannot be copied or pickled", help=instead)


def check_sort(sort: object) -> None:
    """Refuse a sort that there is not."""
    if sort not in get_args(Sort):
        raise UnknownSortError(
            f"there is no sort of facts {sort!r}",
            help='use "all", "explicit" or "derived"',
        )


class Change:
    """The net effect of an update, or of a planned one.

    Attributes:
        applied: whether it has happened; false for what `kb.plan` returns.
        contradictions: how many were added and removed.

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
        """Tell what an update did.

        Args:
            outcome: what it did.
            catalogue: the predicates that it tells of.
            asked: those that it can be asked about, if these are more.
            applied: whether it has happened.
            contradictions: how many were added and removed.
        """
        self.applied = applied
        self.contradictions = contradictions
        self._outcome = outcome
        self._catalogue = catalogue
        self._asked = catalogue if asked is None else asked

    @property
    def report(self) -> Report:
        """The algorithm, and per stratum its rounds, work and seconds."""
        return self._outcome.report

    @property
    def predicates(self) -> tuple[str, ...]:
        """The predicates that gained or lost facts, in order of name."""
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
        """How many facts were added and removed, of all predicates together."""
        added, removed = map(sum, zip(*self.sizes.values(), (0, 0), strict=True))
        return added, removed

    @property
    def explicit_sizes(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """How many facts of each predicate became explicit, and how many ceased to."""
        outcome, known = self._outcome, self._asked
        gained, lost = (
            {name: size for name, size in facts.relations().items() if name in known}
            for facts in (outcome.explicit_added, outcome.explicit_removed)
        )
        return gained, lost

    @property
    def explicit_size(self) -> int:
        """How many facts became explicit or ceased to be."""
        summary = self._outcome.summary
        return summary.inserted + summary.deleted

    def is_empty(self) -> bool:
        """Whether no fact was added or removed."""
        return not self.sizes

    def added(self, predicate: str, sort: Sort = "all") -> Result:
        """The facts that hold now and did not before.

        Args:
            predicate: the predicate they belong to.
            sort: all of them, only explicit ones, or only derived ones.
        """
        outcome = self._outcome
        return self._read(predicate, outcome.added, outcome.explicit_added, sort)

    def removed(self, predicate: str, sort: Sort = "all") -> Result:
        """The facts that held before and do not now; `sort` as for `added`."""
        outcome = self._outcome
        return self._read(predicate, outcome.removed, outcome.explicit_removed, sort)

    def inserted(self, predicate: str) -> Result:
        """The facts that became explicit, whether or not they held before."""
        return self._read(predicate, self._outcome.explicit_added, None, "all")

    def deleted(self, predicate: str) -> Result:
        """The facts that are no longer explicit, whether or not they still hold."""
        return self._read(predicate, self._outcome.explicit_removed, None, "all")

    def to_arrow(self) -> pa.Table:
        """An Arrow table of all facts that were added and removed, of all predicates.

        Its columns are `predicate`, `change` (`added` or `removed`) and `fact`, the
        fact as a program writes it.
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
        """The rows of `to_arrow`, for libraries that read Arrow's C interface.

        Args:
            requested_schema: the types that the reader would like best.
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
        """How many facts were added and removed, as a table for notebooks."""
        sizes = self.sizes
        rows = [(name, added, removed) for name, (added, removed) in sizes.items()]
        names = ("predicate", "came", "left") if sizes else ()
        title = self._title() if sizes else f"{self._title()}: nothing"
        return html_table(title, names, rows)

    def _title(self) -> str:
        return "Change" if self.applied else "Planned change"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be copied or pickled: the facts are where the engine has them."""
        raise UncopiableError(self, "keep what `added` and `removed` return")


def _where_they_are(
    facts: Snapshot, explicit: Snapshot | None, name: str, sort: Sort
) -> DistantRows | None:
    """The rows of a snapshot, if they are too many to be read without being asked."""
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
    """The rows of a relation where they are, if they are many."""
    return _where_they_are(facts, None, name, "all")


def read_relation(facts: Snapshot, name: str, arity: int) -> pa.Table:
    """The rows of a relation in a snapshot, an empty table if there are none."""
    count = facts.relations().get(name, 0)
    if not arity:
        return rows_without_columns(count)
    if not count:
        return empty_table(arity)
    return facts.read(name)


def split(table: pa.Table, explicit: pa.Table, sort: Sort) -> pa.Table:
    """The rows of a table that are, or are not, among the explicit ones."""
    if not table.num_columns:
        keep = bool(explicit.num_rows) == (sort == "explicit")
        return table if keep else table.slice(0, 0)
    is_explicit = pc.is_in(row_keys(table), value_set=row_keys(explicit))
    return table.filter(is_explicit if sort == "explicit" else pc.invert(is_explicit))


def row_keys(table: pa.Table) -> pa.Array:
    """One string for each row, different for different rows.

    The length of each text stands before it, so that no text can look like two.
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
    """An outcome whose changes are about all facts.

    Args:
        outcome: changes of representatives.
        arities: the predicates that can be asked about.
    """
    change = outcome.cliques
    if change is None:
        return outcome
    stayed = () if change.stayed is None else (change.stayed,)
    old = Side((change.lost, *stayed), change.before, arities)
    new = Side((change.gained, *stayed), change.after, arities)
    return replace(outcome, removed=Gone(old, new), added=Gone(new, old))


class Side:
    """Facts of representatives at one moment, and what they stand for.

    Equalities between different constants are told in `same_as` and as triples, if
    somebody can ask about these; that a constant is equal to itself is left out.

    Args:
        facts: the facts, in parts that have none in common.
        representatives: which constants are equal.
        arities: the predicates that can be asked about.
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
        """The predicates that have facts."""
        every = chain.from_iterable(part.relations() for part in self.facts)
        names = {name for name in every if not is_auxiliary(name)}
        if not self.representatives.is_identity():
            names |= {SAME_AS, TRIPLE} & self.arities.keys()
        return frozenset(names)

    def size(self, name: str) -> int:
        """How many facts of a predicate there are."""
        if name in {SAME_AS, TRIPLE}:
            return int(self.table(name).num_rows)
        return self.representatives.expanded_size(self._normal(name))

    def _normal(self, name: str) -> pa.Table:
        arity = self.arities[name]
        return joined_tables([read_relation(part, name, arity) for part in self.facts])

    def table(self, name: str) -> pa.Table:
        """All facts of a predicate."""
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
    """Facts of one moment that are not there at another; a `Snapshot`."""

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
        """The number of facts of each predicate that has any."""
        return self._sizes

    def read(self, relation: str) -> pa.Table:
        """The facts of a predicate."""
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
    """A table without equalities, which are reported on their own."""
    if name == SAME_AS:
        return table.slice(0, 0)
    return rows_without(table, [{1: OWL_SAME_AS}]) if name == TRIPLE else table
