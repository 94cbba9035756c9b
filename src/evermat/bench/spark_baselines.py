"""What one would write by hand: loops over data frames, and Spark's own recursion."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from evermat.lang.normalise import normalise
from evermat.lang.parser import parse_program
from evermat.lang.syntax import Term, Variable
from evermat.lang.terms import RDF_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from evermat.lang.syntax import Atom, Rule

_LINE = r"^(\\S+) (\\S+) (.*) \\.$"
"""A line of N-Triples, as a text within SQL."""

RECURSION = """
    WITH RECURSIVE reach(source, target) AS (
        SELECT source, target FROM edge
        UNION ALL
        SELECT reach.source, edge.target
        FROM reach JOIN edge ON reach.target = edge.source
    )
    SELECT count(*) AS n FROM (SELECT DISTINCT * FROM reach)
"""


def closure_by_loop(session: SparkSession, edges: pa.Table) -> int:
    """Paths grow by one edge a round, until no new pair comes."""
    edge = session.createDataFrame(edges).localCheckpoint()
    step = session.createDataFrame(edges.rename_columns(["target", "end"]))
    reach = delta = edge
    while not delta.isEmpty():
        found = delta.join(step, "target").selectExpr("source", "end AS target")
        delta = (
            found.distinct()
            .join(reach, ["source", "target"], "left_anti")
            .localCheckpoint()
        )
        reach = reach.union(delta).localCheckpoint()
    return reach.count()


def closure_by_recursion(session: SparkSession, edges: pa.Table) -> int:
    """`WITH RECURSIVE`, which keeps duplicates: Spark knows no other way so far."""
    session.createDataFrame(edges).createOrReplaceTempView("edge")
    return int(session.sql(RECURSION).collect()[0]["n"])


def materialise_by_loop(
    session: SparkSession, text: str, files: Sequence[Path], published: Path
) -> tuple[int, int]:
    """All rules in one union a round, over one frame of all facts.

    The frame has the name of the predicate as `p` and two columns for arguments. Rules
    have no negation and no built-ins, which is all that is needed here.

    Returns:
        How many facts there are, and after how many rounds.
    """
    rules = normalise(parse_program(text).rules)
    facts = _read_triples(session, files).localCheckpoint()
    delta, rounds = facts, 0
    while not delta.isEmpty():
        rounds += 1
        parts = [
            _matches(rule, place, delta, facts)
            for rule in rules
            for place in range(len(list(rule.positive_atoms())))
        ]
        found = reduce(lambda left, right: left.union(right), parts)
        delta = (
            found.distinct()
            .join(facts, ["p", "a0", "a1"], "left_anti")
            .localCheckpoint()
        )
        facts = facts.union(delta).localCheckpoint()
    facts.write.partitionBy("p").parquet(str(published))
    return facts.count(), rounds


def _read_triples(session: SparkSession, files: Sequence[Path]) -> DataFrame:
    """Lines of N-Triples as facts: types are classes, the rest are properties."""
    lines = session.read.text([str(file) for file in files])
    parts = [f"regexp_extract(value, '{_LINE}', {group})" for group in (1, 2, 3)]
    triples = lines.selectExpr(
        *(f"{e} AS {n}" for e, n in zip(parts, "spo", strict=True))
    )
    is_type = f"p = '<{RDF_TYPE.text}>'"
    name = f"regexp_extract(if({is_type}, o, p), '([^/>]+)>$', 1)"
    return triples.selectExpr(
        f"{name} AS p", "s AS a0", f"if({is_type}, '', o) AS a1"
    ).distinct()


def _matches(rule: Rule, place: int, delta: DataFrame, facts: DataFrame) -> DataFrame:
    """What a rule derives if one of its atoms reads what is new."""
    frames = [
        _atom(atom, delta if at == place else facts)
        for at, atom in enumerate(rule.positive_atoms())
    ]
    joined = frames[0]
    for frame in frames[1:]:
        shared = [name for name in frame.columns if name in joined.columns]
        joined = joined.join(frame, shared) if shared else joined.crossJoin(frame)
    values = [_value(argument) for argument in rule.head.arguments]
    values += ["''"] * (2 - len(values))
    return joined.selectExpr(
        f"'{rule.head.predicate}' AS p", f"{values[0]} AS a0", f"{values[1]} AS a1"
    )


def _atom(atom: Atom, frame: DataFrame) -> DataFrame:
    chosen = frame.where(f"p = '{atom.predicate}'")
    columns: dict[str, str] = {}
    for at, argument in enumerate(atom.arguments):
        if isinstance(argument, Variable) and argument.name not in columns:
            columns[argument.name] = f"a{at}"
        else:
            value = _value(argument)
            known = columns.get(value.strip("`")[1:])
            chosen = chosen.where(f"a{at} = {known or value}")
    return chosen.selectExpr(*(f"{at} AS `v{name}`" for name, at in columns.items()))


def _value(argument: object) -> str:
    if isinstance(argument, Variable):
        return f"`v{argument.name}`"
    if isinstance(argument, Term):
        return f"'{argument.constant.text}'"
    message = f"`{argument}` is no plain argument"
    raise TypeError(message)
