"""Facts and rules in all forms that users pass, read and checked.

Facts may be rows, tables, frames or files; they become one table for each predicate,
checked against the catalogue. Rules may be strings, files, objects, or lists of these.
Files of rules may be in other dialects, and may name files of facts (`@import`,
`.input`), which are read along with them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard, cast

import pyarrow as pa
import pyarrow.compute as pc

from evermat.algebra.engine import StagedRows
from evermat.columns import (
    ArityMismatchError,
    answer_places,
    as_terms,
    constants,
    declared_places,
    kinds_in,
    order_of,
    rows_without_columns,
    table_of_rows,
    term_table,
)
from evermat.errors import EvermatError, Label
from evermat.io import read_table, rows_from
from evermat.io.column_types import TYPES
from evermat.io.delimited import DIALECTS
from evermat.io.files import UnknownFormatError, data_file
from evermat.io.frames import names_of
from evermat.io.headers import ask_about_header
from evermat.kb.program_files import load_sources, read_program
from evermat.lang.catalogue import ArityClashError
from evermat.lang.parser import parse_program
from evermat.lang.syntax import TRIPLE, Program, Rule, Term
from evermat.lang.types import COLUMN_TYPES
from evermat.rdf import Ontology, read_ontology, read_rdf
from evermat.rdf.owl.documents import SYNTAXES as ONTOLOGIES
from evermat.results.result import Result
from evermat.runtime import collection_paused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evermat.io import DataFile
    from evermat.kb.program_files import Syntax
    from evermat.lang.catalogue import Catalogue, ColumnNames, Predicate
    from evermat.lang.syntax import Atom
    from evermat.values import Constant


def read_fact_file(
    path: Path,
    predicate: Predicate | None = None,
    *,
    header: bool | None = None,
    base: str | None = None,
    name: str = "",
    names: ColumnNames | None = None,
) -> pa.Table:
    """Read the rows of a file: a table, or triples.

    Args:
        path: the file; its suffix determines the format.
        predicate: declares names and types of the columns, if it is known.
        header: whether a text file begins with a row of names. By default it does if
            that row consists of the declared names, in any order and case.
        base: the base of relative IRIs in RDF files.
        name: the name of the predicate if `predicate` is not known.
        names: the names that rules use for undeclared columns.

    Raises:
        HeaderNamesError: the first row contains some of the declared names.

    Warns:
        HeaderWarning: no names are declared, and the first row looks like names.
    """
    file = data_file(path)
    if file.is_rdf:
        return read_rdf(path, base=base)
    if predicate is not None and predicate.has_names:
        types = _types(predicate)
        return read_table(path, columns=predicate.columns, types=types, header=header)
    if predicate is None:
        table = read_table(path, header=header)
    else:
        # Other formats have their own types and names.
        types = _types(predicate) if file.format in DIALECTS else None
        table = read_table(path, types=types, arity=predicate.arity, header=header)
    if header is None:
        known = name if predicate is None else predicate.name
        _ask_about_header(table, file, known or file.predicate, names)
    return table


def _ask_about_header(
    table: pa.Table, file: DataFile, name: str, names: ColumnNames | None
) -> None:
    dialect = DIALECTS.get(file.format)
    if dialect is not None and dialect.header is None:
        in_rules = partial(names.in_rules, name) if names is not None else tuple
        ask_about_header(table, file.path, name, in_rules)


def _types(predicate: Predicate) -> list[str | None] | None:
    """Return the declared types, where strings can be converted to them."""
    return [each if each in TYPES else None for each in predicate.types] or None


# -------------------------------------------------------------------------- fact tables


class FactError(EvermatError, ValueError):
    """A fact with an argument that is not a constant."""

    code: ClassVar[str] = "EM252"


class FactTypeError(EvermatError, TypeError):
    """A value whose type differs from the declared type of its column."""

    code: ClassVar[str] = "EM403"


_MOMENTS = frozenset(
    each.id
    for each in (
        *(pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns")),
        *(pa.timestamp("s"), pa.duration("s"), pa.month_day_nano_interval()),
    )
)
"""Arrow types of dates and times."""

Stage = Callable[[Sequence[object], str], pa.Table | StagedRows]
"""Stages frames, without reading them, for the predicate with the given name."""


def fact_tables(
    data: Mapping[str, Sequence[object]],
    facts: Sequence[Atom],
    catalogue: Catalogue,
    stage: Stage | None = None,
    names: ColumnNames | None = None,
) -> dict[str, pa.Table | StagedRows]:
    """Return one table for each predicate that is mentioned.

    Columns with names are matched to declared columns by name, others by position.

    Args:
        data: pieces of data by predicate: frames, tables, rows, paths of files.
        facts: facts of programs.
        catalogue: the arities and declared types of predicates.
        stage: stages Spark frames, if the engine can.
        names: records the names of columns of predicates without declared ones.

    Raises:
        ArityClashError: rows that are too long or too short.
        ColumnNamesError: column names that differ from the declared ones.
        FactTypeError: a value that does not have the declared type.

    Warns:
        SwappedColumnsWarning: undeclared columns seem to be in the wrong order.
        HeaderWarning: the first row of a file seems to contain names.
    """
    reader = _Reader(catalogue, names)
    plain = None if facts else reader.plain_tables(data)
    return _any_tables(data, facts, reader, stage) if plain is None else plain


@collection_paused()
def _any_tables(
    data: Mapping[str, Sequence[object]],
    facts: Sequence[Atom],
    reader: _Reader,
    stage: Stage | None,
) -> dict[str, pa.Table | StagedRows]:
    """See `fact_tables`."""
    catalogue = reader.catalogue
    pieces: dict[str, list[pa.Table]] = {}
    frames: dict[str, list[Any]] = {}
    given = [(name, part) for name, parts in data.items() for part in parts]
    for name, part in given:
        frame = None if stage is None else reader.frame(part, name)
        if frame is not None:
            frames.setdefault(name, []).append(frame)
            continue
        table = reader.read(part, name)
        if table.num_columns or table.num_rows or catalogue.arity(name) == 0:
            pieces.setdefault(name, []).append(table)
    for name, rows in _fact_rows(facts).items():
        table = table_of_rows(rows, len(rows[0]))
        pieces.setdefault(name, []).append(table)
    tables = {name: together(name, parts) for name, parts in pieces.items()}
    if stage is not None:
        tables |= _staged(frames, tables, catalogue, stage)
    for name, table in tables.items():
        catalogue.check(name, table.num_columns)
        known = catalogue.get(name)
        if known is not None and known.types:
            _check_types(table, known)
    return tables


def _staged(
    frames: Mapping[str, list[Any]],
    tables: Mapping[str, pa.Table],
    catalogue: Catalogue,
    stage: Stage,
) -> dict[str, pa.Table | StagedRows]:
    """Stage frames, together with tables of the same predicates."""
    staged = {}
    for name, parts in frames.items():
        for frame in parts:
            catalogue.check(name, len(frame.columns))
        also = [tables[name]] if name in tables else []
        try:
            staged[name] = stage([*parts, *also], name)
        except ArityMismatchError as error:
            known, found = error.expected, error.found
            raise ArityClashError(name, known=known, found=found) from error
    return staged


def together(name: str, tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate several tables of a predicate."""
    first = tables[0]
    for other in tables[1:]:
        if first.num_columns != other.num_columns:
            raise ArityClashError(
                name, known=first.num_columns, found=other.num_columns
            )
    if len(tables) == 1:
        return first
    if not first.num_columns:
        return rows_without_columns(sum(table.num_rows for table in tables))
    names = first.column_names
    named = [table.rename_columns(names) for table in tables]
    if any(not table.schema.equals(first.schema) for table in named):
        named = [term_table(table) for table in named]
    return pa.concat_tables(named)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads data, using the known columns of its predicate."""

    catalogue: Catalogue
    names: ColumnNames | None

    def plain_tables(
        self, data: Mapping[str, Sequence[object]]
    ) -> dict[str, pa.Table | StagedRows] | None:
        """Return data that needs no conversion: lists of tuples, and tables.

        None if any of it needs a conversion or a warning.
        """
        tables: dict[str, pa.Table | StagedRows] = {}
        for name, parts in data.items():
            known = self.catalogue.get(name)
            if known is None or known.types or len(parts) != 1:
                return None
            (table,) = parts
            if known.arity and _is_list_of_tuples(table):
                tables[name] = _of_arity(table, name, known)
                continue
            if not isinstance(table, pa.Table):
                return None
            if table.num_columns != known.arity or not self._in_order(table, known):
                return None
            # Cheaper than a conversion: reading columns one by one takes twice as long.
            for column in table.columns:
                if column.null_count or column.type.id in _MOMENTS:
                    return None
            tables[name] = table
        return tables

    def _in_order(self, table: pa.Table, known: Predicate) -> bool:
        """Return whether the column names allow for the columns to be in order."""
        found = tuple(table.column_names)
        if known.has_names:
            return found == known.columns
        if known.name == TRIPLE:
            return _triple_places(found) in (None, [0, 1, 2])
        return self.names is None or self.names.is_familiar(known.name, found)

    def frame(self, part: object, name: str) -> object | None:
        """Return a Spark frame with columns, or distributed rows; None for other data.

        The columns are in the order of the predicate's columns.
        """
        if isinstance(part, Result):
            return self._distant(part, name)
        # Only Spark's own frames have meaningful names.
        columns = getattr(part, "columns", ()) if hasattr(part, "toArrow") else ()
        if not columns:
            return None
        if not hasattr(part, "select"):
            return part
        places = self._places(columns, name)
        return part if places is None else _selected(part, places)

    def _distant(self, part: Result, name: str) -> object | None:
        rows, places = part.distant, self._answer_places(part, name)
        if rows is None or places == list(range(len(part.columns))):
            return rows
        return _selected(rows.terms(), places)

    def _answer_places(self, part: Result, name: str) -> list[int]:
        """Return for each argument of a predicate its position among answer columns."""
        known = self.catalogue.get(name)
        is_in_order = part.predicate == name  # regardless of the names of its columns
        if is_in_order or known is None or not known.has_names:
            return list(range(len(part.columns)))
        return list(answer_places(part.columns, known.columns, name=name))

    def _places(self, found: Sequence[str], name: str) -> list[int] | None:
        """Return for each argument of a predicate its position among named columns.

        None if they are in order.
        """
        known = self.catalogue.get(name)
        if known is not None and known.has_names:
            return list(declared_places(found, known.columns, name=name))
        if name == TRIPLE:
            return _triple_places(found)
        if self.names is not None and (known is None or known.arity == len(found)):
            self.names.note(name, found)
        return None

    def read(self, part: object, name: str) -> pa.Table:
        """Read a piece of data into a table."""
        known = self.catalogue.get(name)
        columns = known.columns if known is not None and known.has_names else None
        if isinstance(part, Result):
            terms = part.to_terms()
            if part.columns:
                terms = terms.select(self._answer_places(part, name))
            return _of_arity(terms, name, known)
        if isinstance(part, Path):
            table = read_fact_file(part, known, name=name, names=self.names)
        else:
            table = _of_arity(part, name, known, columns)
        if columns is None and table.num_columns:
            moved = self._places(table.column_names, name)
            return table if moved is None else table.select(moved)
        return table


def _is_list_of_tuples(part: object) -> TypeGuard[list[tuple[object, ...]]]:
    """Return whether a piece of data is a list of plain tuples, without names."""
    return type(part) is list and set(map(type, part)) == {tuple}


def _of_arity(
    part: object,
    name: str,
    known: Predicate | None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    # An empty list does not determine the number of columns.
    arity = None if known is None else known.arity
    try:
        if arity and _is_list_of_tuples(part):
            return table_of_rows(part, arity)
        return rows_from(part, arity=arity, name=name, columns=columns)
    except ArityMismatchError as error:
        where = "here" if error.row is None else f"in row {error.row}"
        raise ArityClashError(
            name, known=error.expected, found=error.found, where=where
        ) from error


def _triple_places(found: Sequence[str]) -> list[int] | None:
    for usual in (("subject", "predicate", "object"), ("s", "p", "o")):
        places = order_of(found, usual)
        if places is not None:
            return places
    return None


def _selected(frame: Any, places: Sequence[int]) -> object:  # noqa: ANN401  of Spark
    names = [frame.columns[at].replace("`", "``") for at in places]
    return frame.select(*(f"`{name}`" for name in names))


def row_in_order(
    row: Sequence[object] | Mapping[str, object], predicate: Predicate
) -> Sequence[object]:
    """Return the values of a row with names, in the order of the columns.

    Rows without names, or of a predicate without declared names, are returned
    unchanged.

    Raises:
        ColumnNamesError: the names differ from the declared ones.
    """
    names = names_of(row) if predicate.has_names else None
    if names is None:
        return cast("Sequence[object]", row)
    values = [*row.values()] if isinstance(row, Mapping) else row
    places = declared_places(names, predicate.columns, name=predicate.name)
    return tuple(values[at] for at in places)


def _fact_rows(facts: Iterable[Atom]) -> dict[str, list[tuple[object, ...]]]:
    rows: dict[str, list[tuple[object, ...]]] = {}
    for fact in facts:
        row = tuple(_constant(fact, argument) for argument in fact.arguments)
        rows.setdefault(fact.predicate, []).append(row)
    return rows


def _constant(fact: Atom, argument: object) -> object:
    if isinstance(argument, Term):
        return argument.constant
    span = getattr(argument, "span", None) or fact.span
    raise FactError(
        f"a fact of `{fact.predicate}` has an argument that is not a constant",
        labels=() if span is None else (Label(span),),
        reason="a fact has constants only",
        help="give the variable a value in a rule's body, or write a constant",
    )


def _check_types(table: pa.Table | StagedRows, predicate: Predicate) -> None:
    """Refuse values that do not have the declared types of a predicate."""
    if not isinstance(table, pa.Table):
        _check_kinds(table, predicate)
        return
    for column, name, type_name in zip(
        table.columns, predicate.columns, predicate.types, strict=True
    ):
        allowed = COLUMN_TYPES[type_name]
        terms = as_terms(column, name=name)
        if kinds_in(terms) <= allowed:
            continue
        numbers = pa.array([int(kind) for kind in allowed], pa.uint8())
        fits = pc.is_in(terms.field(0), value_set=numbers)
        row = int(pc.index(fits, value=False).as_py())
        (wrong,) = constants(terms.slice(row, 1))
        raise _wrong_type(wrong, f" in row {row + 1}", predicate, name, type_name)


def _check_kinds(staged: StagedRows, predicate: Predicate) -> None:
    """Check the same for rows that are outside this process."""
    for kinds, name, type_name in zip(
        staged.kinds, predicate.columns, predicate.types, strict=True
    ):
        for wrong in set(kinds) - COLUMN_TYPES[type_name]:
            raise _wrong_type(kinds[wrong], "", predicate, name, type_name)


def _wrong_type(
    wrong: Constant, where: str, predicate: Predicate, column: str, type_name: str
) -> FactTypeError:
    return FactTypeError(
        f"{wrong}{where} of `{predicate.name}` is not of type `{type_name}`",
        reason=f"column `{column}` of `{predicate.name}` is declared `{type_name}`",
        help="correct the value, or the declaration",
    )


# -------------------------------------------------------------------------- rule inputs


RuleInput = str | Path | Program | Rule | Ontology
"""Text in the language, the path of a file, a program, a rule, or an ontology."""


class RuleInputError(EvermatError, TypeError):
    """A value that is neither rules nor the path of a file."""

    code: ClassVar[str] = "EM551"


class RuleFileError(EvermatError, OSError):
    """A file of rules that cannot be read."""

    code: ClassVar[str] = "EM552"


_FILE_NAME = re.compile(r"[^\s:?(\[]+\.(dl|rls|evm|datalog|txt)", re.IGNORECASE)
"""A name without blanks, brackets and question marks, with a suffix of rule files."""


@dataclass(frozen=True, slots=True)
class RulesRead:
    """A program, and the facts in the files that it names."""

    program: Program
    tables: Mapping[str, list[pa.Table]]


def read_rules(
    rules: Iterable[RuleInput], *, prefixes: Mapping[str, str] | None = None
) -> RulesRead:
    """Combine all rules that a user passed into one program.

    Args:
        rules: strings are program text, never file names; `Path` objects are files.
        prefixes: prefixes that may be used without a declaration.

    Raises:
        RuleInputError: a value of another type, or a string that is a file name.
        RuleFileError: a file that cannot be read.
    """
    together = Program()
    tables: dict[str, list[pa.Table]] = {}
    for part in rules:
        # Prefixes carry over to the programs that follow.
        known = dict(prefixes or {}) | dict(together.prefixes)
        program = _read_one(part, known)
        folder = part.parent if isinstance(part, Path) else Path()
        for name, table in load_sources(program, folder, read_rdf=_read_rdf).items():
            tables.setdefault(name, []).append(table)
        together = together + program
    return RulesRead(together, tables)


def listed(rules: RuleInput | Iterable[RuleInput] | None) -> list[RuleInput]:
    """Return one or several inputs as a list."""
    if rules is None:
        return []
    if isinstance(rules, str | Path | Program | Rule | Ontology):
        return [rules]
    if isinstance(rules, bytes | Mapping) or not isinstance(rules, Iterable):
        raise _wrong_rule_type(rules)
    return list(rules)


def read_rule_file(path: Path, syntax: Syntax = "auto") -> Program:
    """Read the program in a file, which may be an ontology.

    Raises:
        RuleFileError: the file cannot be read as text, or contains data.
        ParseError: the text is not a program.
    """
    with reading(path):
        if path.suffix in ONTOLOGIES:
            return read_ontology(path).program
        file = _data_file(path)
        if file is None or not path.is_file():
            return read_program(path, syntax)
        if file.is_rdf:
            ontology = read_ontology(path)
            if ontology.has_axioms:
                return ontology.program
    raise RuleFileError(
        f"`{path}` is a file of facts, not of rules",
        help=f"give it with `--facts {path}`, or to `load` or `insert`",
    )


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Convert errors about a file of rules to Evermat's own errors."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise RuleFileError(
            f"`{path}` is not UTF-8 text: {error.reason} at byte {error.start}",
            help="save the file in UTF-8",
        ) from error
    except OSError as error:
        if isinstance(error, EvermatError):
            raise
        raise RuleFileError(
            f"cannot read `{path}`: {(error.strerror or str(error)).lower()}",
            help="check the path",
        ) from error


def _read_one(rules: object, prefixes: Mapping[str, str]) -> Program:
    match rules:
        case Program():
            return rules
        case Rule():
            return Program(rules=(rules,))
        case Ontology():
            return rules.program
        case Path():
            return read_rule_file(rules)
        case str():
            _refuse_file_name(rules)
            return parse_program(rules, prefixes=prefixes)
    raise _wrong_rule_type(rules)


def _wrong_rule_type(rules: object) -> RuleInputError:
    return RuleInputError(
        f"rules cannot be given as `{type(rules).__name__}`: {rules!r}",
        help="give text, a pathlib.Path, a Program, a Rule, an Ontology, or a list",
    )


def _data_file(path: Path) -> DataFile | None:
    """Return the file as a data file, if its name has a suffix of one."""
    try:
        return data_file(path)
    except UnknownFormatError:
        return None


def _read_rdf(file: DataFile) -> pa.Table:
    return read_rdf(file.path, file.format)


def _refuse_file_name(text: str) -> None:
    name = text.strip()
    if _FILE_NAME.fullmatch(name):
        raise RuleInputError(
            f"the text of the rules is `{name}`, which looks like a file name",
            help=f"to read a file, write Path({name!r})",
        )
