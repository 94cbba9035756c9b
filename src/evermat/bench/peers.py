"""Peers from PyPI on the same problems: clingo and DuckDB.

Both get the program as Evermat's parser reads it, translated rule by rule.

- *clingo* grounds the rules, which for positive programs is seminaïve materialisation.
  The facts are grounded first, so that loading and materialising are timed separately.
- *DuckDB* has no rules. A program with one linearly recursive predicate becomes a
  recursive common table expression; any other becomes a seminaïve loop of SQL
  statements over tables in which each row has the number of its round, so that a round
  reads the rows of the last one, and DuckDB's row group statistics let it skip the
  others.

Only the features of the benchmark programs are translated: positive rules with
variables, integers, names and `?z = ?x + ?y`.
"""

# ruff: noqa: S608  generating SQL is the purpose, and all names in it are ours
from __future__ import annotations

from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from evermat.lang.parser import parse_program
from evermat.lang.syntax import Atom, Call, Condition, Rule, Term, Variable
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import duckdb

    from evermat.bench.generators.problem import Problem
    from evermat.lang.syntax import BodyElement, Expression


@dataclass(frozen=True, slots=True)
class PeerResult:
    """The number of facts of a peer, explicit ones included, and its times.

    Attributes:
        used: seconds of processor time on rules, where that is known.
    """

    facts: int
    load_seconds: float
    seconds: float
    used: float = 0.0


class UntranslatableError(ValueError):
    """A program uses a feature that a peer's translation does not support."""


# ------------------------------------------------------------------------ clingo


def run_clingo(problem: Problem) -> PeerResult:
    """Materialise with clingo's grounder."""
    return ground(problem.facts, asp_program(problem.rules))


def ground(facts: Mapping[str, pa.Table], rules: str) -> PeerResult:
    """Ground rules that are in clingo's own syntax."""
    import clingo  # noqa: PLC0415  an optional dependency

    control = clingo.Control(["--warn=none"])
    start = perf_counter()
    for name, table in facts.items():
        control.add("facts", [], "".join(_asp_facts(name, table)))
    control.ground([("facts", [])])
    loaded, before = perf_counter(), process_time()
    control.add("rules", [], rules)
    control.ground([("rules", [])])
    seconds, used = perf_counter() - loaded, process_time() - before
    return PeerResult(len(control.symbolic_atoms), loaded - start, seconds, used)


def asp_program(rules: str) -> str:
    """Translate a program to the syntax of answer set programming."""
    lines = []
    for rule in parse_program(rules).rules:
        body = ", ".join(_asp_element(element) for element in rule.body)
        lines += [f"{_asp_element(head)} :- {body}." for head in rule.heads]
    return "\n".join(lines)


def _asp_facts(name: str, table: pa.Table) -> Iterator[str]:
    """Yield the facts as text, column by column and batch by batch."""
    for batch in table.to_batches(max_chunksize=100_000):
        pieces: list[object] = [f"{name}("]
        for number, column in enumerate(batch.columns):
            texts = plain_column(column)
            if pa.types.is_string(texts.type):
                texts = pc.binary_join_element_wise('"', texts, '"', "")
            pieces += [", "] if number else []
            pieces.append(texts.cast(pa.string()))
        lines = pc.binary_join_element_wise(*pieces, ").\n", "")
        yield "".join(lines.to_pylist())


def _asp_element(element: BodyElement) -> str:
    match element:
        case Atom(predicate=predicate, arguments=arguments):
            inner = ", ".join(_asp_expression(argument) for argument in arguments)
            return f"{predicate}({inner})"
        case Condition(expression=Call(function="=", arguments=(left, right))):
            return f"{_asp_expression(left)} = {_asp_expression(right)}"
        case _:
            raise UntranslatableError(str(element))


def _asp_expression(expression: Expression) -> str:
    match expression:
        case Variable(name=name):
            return name.capitalize()
        case Term(constant=value):
            return value.text if value.kind is Kind.INTEGER else f'"{value.text}"'
        case Call(function="+", arguments=(left, right)):
            return f"{_asp_expression(left)} + {_asp_expression(right)}"
        case _:
            raise UntranslatableError(str(expression))


# ------------------------------------------------------------------------ DuckDB


def run_duckdb(problem: Problem) -> PeerResult:
    """Materialise with DuckDB."""
    import duckdb  # noqa: PLC0415  an optional dependency

    rules = parse_program(problem.rules).rules
    with duckdb.connect() as connection:
        start = perf_counter()
        _create_tables(connection, problem.facts, rules)
        loaded = perf_counter()
        recursive = linear_predicate(rules)
        if recursive is None or recursive in problem.facts:
            _iterate(connection, rules)
        else:
            connection.execute(recursive_query(rules, recursive))
        seconds = perf_counter() - loaded
        facts = sum(_count(connection, name) for name in _arities(problem.facts, rules))
    return PeerResult(facts, loaded - start, seconds)


def linear_predicate(rules: Sequence[Rule]) -> str | None:
    """Return the only derived predicate, if just one atom of the rules uses it."""
    heads = {head.predicate for rule in rules for head in rule.heads}
    if len(heads) != 1:
        return None
    (name,) = heads
    atoms = [atom.predicate for rule in rules for atom in rule.positive_atoms()]
    return name if atoms.count(name) == 1 else None


def recursive_query(rules: Sequence[Rule], name: str) -> str:
    """Translate a program with one linearly recursive predicate to one statement."""
    base: list[str] = []
    steps: list[str] = []
    for rule in rules:
        atoms = list(rule.positive_atoms())
        target = steps if any(atom.predicate == name for atom in atoms) else base
        tables = [
            "closure" if atom.predicate == name else f'"{atom.predicate}"'
            for atom in atoms
        ]
        target.append(_select(rule, tables, [""] * len(tables)))
    arity = rules[0].head.arity
    columns = ", ".join(f"c{number}" for number in range(arity))
    union = " UNION ".join([*base, *steps])
    return (
        f'INSERT INTO "{name}" WITH RECURSIVE closure({columns}) AS ({union}) '
        f"SELECT {columns}, 0 FROM closure"
    )


def _create_tables(
    connection: duckdb.DuckDBPyConnection,
    facts: Mapping[str, pa.Table],
    rules: Sequence[Rule],
) -> None:
    kind = "BIGINT"
    for name, table in facts.items():
        columns = [plain_column(column) for column in table.itercolumns()]
        if pa.types.is_string(columns[0].type):
            kind = "VARCHAR"
        names = [f"c{number}" for number in range(len(columns))]
        plain = pa.table(columns, names=names)
        connection.register("incoming", plain)
        connection.execute(f'CREATE TABLE "{name}" AS SELECT *, 0 AS r FROM incoming')
        connection.unregister("incoming")
    for name, arity in _arities(facts, rules).items():
        if name not in facts:
            typed = ", ".join(f"c{number} {kind}" for number in range(arity))
            connection.execute(f'CREATE TABLE "{name}" ({typed}, r INTEGER)')


def _arities(facts: Mapping[str, pa.Table], rules: Sequence[Rule]) -> dict[str, int]:
    arities = {name: table.num_columns for name, table in facts.items()}
    for rule in rules:
        for atom in (*rule.heads, *rule.positive_atoms()):
            arities.setdefault(atom.predicate, atom.arity)
    return arities


def _count(connection: duckdb.DuckDBPyConnection, name: str) -> int:
    row = connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()
    return int(row[0]) if row else 0


def _iterate(connection: duckdb.DuckDBPyConnection, rules: Sequence[Rule]) -> None:
    """Run the seminaïve loop: the new rows of round k get number k + 1."""
    changed = {atom.predicate for rule in rules for atom in rule.positive_atoms()}
    round_number = 0
    while changed:
        selects: dict[str, list[str]] = {}
        for rule in rules:
            found = list(_delta_selects(rule, changed, round_number))
            selects.setdefault(rule.head.predicate, []).extend(found)
        changed = set()
        for name, parts in selects.items():
            if parts and _insert_new(connection, name, parts, round_number + 1):
                changed.add(name)
        round_number += 1


def _delta_selects(rule: Rule, changed: set[str], last: int) -> Iterator[str]:
    """Yield one select for each atom whose rows of the last round are new."""
    atoms = list(rule.positive_atoms())
    tables = [f'"{atom.predicate}"' for atom in atoms]
    for position, atom in enumerate(atoms):
        if atom.predicate in changed:
            rounds = [f"< {last}"] * position + [f"= {last}"]
            rounds += [f"<= {last}"] * (len(atoms) - position - 1)
            yield _select(rule, tables, rounds)


def _insert_new(
    connection: duckdb.DuckDBPyConnection, name: str, parts: list[str], number: int
) -> bool:
    columns = [row[0] for row in connection.execute(f'DESCRIBE "{name}"').fetchall()]
    columns.remove("r")
    listed = ", ".join(columns)
    row = connection.execute(
        f'INSERT INTO "{name}" SELECT DISTINCT {listed}, {number} '
        f"FROM ({' UNION ALL '.join(parts)}) AS news({listed}) "
        f'ANTI JOIN "{name}" USING ({listed})'
    ).fetchone()
    return bool(row and row[0])


@dataclass(slots=True)
class _Bindings:
    """SQL expressions of a rule's variables, and conditions of the WHERE clause."""

    values: dict[str, str] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)

    def match(self, argument: Expression, column: str) -> None:
        if isinstance(argument, Variable) and argument.name not in self.values:
            self.values[argument.name] = column
        else:
            self.conditions.append(f"{column} = {self.text(argument)}")

    def text(self, expression: Expression) -> str:
        match expression:
            case Variable(name=name):
                return self.values[name]
            case Term(constant=value):
                return _sql_constant(value)
            case Call(function="+", arguments=(left, right)):
                return f"({self.text(left)} + {self.text(right)})"
            case _:
                raise UntranslatableError(str(expression))


def _select(rule: Rule, tables: Sequence[str], rounds: Sequence[str]) -> str:
    bindings = _Bindings()
    sources = []
    for number, (atom, table) in enumerate(
        zip(rule.positive_atoms(), tables, strict=True)
    ):
        sources.append(f"{table} AS t{number}")
        for place, argument in enumerate(atom.arguments):
            bindings.match(argument, f"t{number}.c{place}")
        if rounds[number]:
            bindings.conditions.append(f"t{number}.r {rounds[number]}")
    for element in rule.body:
        match element:
            case Atom():
                continue
            case Condition(
                expression=Call(function="=", arguments=(Variable(name=name), value))
            ):
                bindings.values[name] = bindings.text(value)
            case _:
                raise UntranslatableError(str(element))
    heads = ", ".join(bindings.text(argument) for argument in rule.head.arguments)
    where = " AND ".join(bindings.conditions)
    return f"SELECT {heads} FROM {', '.join(sources)}" + (where and f" WHERE {where}")


def _sql_constant(value: Constant) -> str:
    if value.kind is Kind.INTEGER:
        return value.text
    return "'" + value.text.replace("'", "''") + "'"


def plain_column(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return terms as strings: a peer needs no kinds if all constants are IRIs."""
    if pa.types.is_struct(column.type):
        return pc.struct_field(column, "text")
    return column
