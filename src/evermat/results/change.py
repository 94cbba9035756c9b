"""What an update changed, exactly, and what it cost."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    ClassVar,
    Literal,
    NoReturn,
    SupportsIndex,
    get_args,
)

import pyarrow as pa
import pyarrow.compute as pc

from evermat.columns import empty_table, rows_without_columns, term_texts
from evermat.errors import EvermatError
from evermat.lang.printer import Printer
from evermat.results.distant_rows import is_distant
from evermat.results.html_tables import html_table
from evermat.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evermat.algebra import Snapshot
    from evermat.lang.catalogue import Catalogue
    from evermat.maintenance.updates import Outcome, Report
    from evermat.results.distant_rows import DistantRows

Sort = Literal["all", "explicit", "derived"]
"""Which facts are meant: all, those that were given, or those only derived."""


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
    ) -> None:
        """Tell what an update did.

        Args:
            outcome: what it did.
            catalogue: the predicates that it tells of.
            asked: those that it can be asked about, if these are more.
            applied: whether it has happened.
        """
        self.applied = applied
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
        """For each predicate that changed: how many facts came and how many left."""
        came, left = self._outcome.added.relations(), self._outcome.removed.relations()
        names = sorted(name for name in {*came, *left} if name in self._catalogue)
        return {name: (came.get(name, 0), left.get(name, 0)) for name in names}

    @property
    def total(self) -> tuple[int, int]:
        """How many facts came and left, of all predicates together."""
        came, left = map(sum, zip(*self.sizes.values(), (0, 0), strict=True))
        return came, left

    @property
    def explicit_sizes(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """How many facts of each predicate became explicit, and how many ceased to."""
        outcome, known = self._outcome, self._asked
        gained, lost = (
            {name: size for name, size in facts.relations().items() if name in known}
            for facts in (outcome.explicit_added, outcome.explicit_removed)
        )
        return gained, lost

    def is_empty(self) -> bool:
        """Whether no fact came or left."""
        return not self.sizes

    def added(self, predicate: str, sort: Sort = "all") -> Result:
        """The facts that hold now and did not before.

        Args:
            predicate: the predicate they belong to.
            sort: all of them, only those that were given, or only derived ones.
        """
        outcome = self._outcome
        return self._read(predicate, outcome.added, outcome.explicit_added, sort)

    def removed(self, predicate: str, sort: Sort = "all") -> Result:
        """The facts that held before and do not now; `sort` as for `added`."""
        outcome = self._outcome
        return self._read(predicate, outcome.removed, outcome.explicit_removed, sort)

    def given(self, predicate: str) -> Result:
        """The facts that became explicit, whether or not they held before."""
        return self._read(predicate, self._outcome.explicit_added, None, "all")

    def withdrawn(self, predicate: str) -> Result:
        """The facts that are explicit no more, whether or not they still hold."""
        return self._read(predicate, self._outcome.explicit_removed, None, "all")

    def to_arrow(self) -> pa.Table:
        """An Arrow table of all facts that came and left, of all predicates.

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
                given = read_relation(chosen, name, predicate.arity)
                rows = split(rows, given, sort)
        return Result(rows, predicate.columns, predicate=predicate.name)

    def __repr__(self) -> str:
        parts = [
            " ".join([name, *[f"+{came}"] * bool(came), *[f"-{left}"] * bool(left)])
            for name, (came, left) in self.sizes.items()
        ]
        return f"<{self._title()} {', '.join(parts) or 'nothing'}>"

    def _repr_html_(self) -> str:
        """How many facts came and left, as a table, which notebooks show."""
        sizes = self.sizes
        rows = [(name, came, left) for name, (came, left) in sizes.items()]
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


def split(table: pa.Table, given: pa.Table, sort: Sort) -> pa.Table:
    """The rows of a table that are, or are not, among those given."""
    if not table.num_columns:
        keep = bool(given.num_rows) == (sort == "explicit")
        return table if keep else table.slice(0, 0)
    is_given = pc.is_in(row_keys(table), value_set=row_keys(given))
    return table.filter(is_given if sort == "explicit" else pc.invert(is_given))


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
