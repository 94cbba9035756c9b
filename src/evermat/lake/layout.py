"""How a state is laid out: one Delta table, four parts.

| part      | a row is                                                                 |
| --------- | ------------------------------------------------------------------------ |
| `facts`   | a change of a fact: its relation, the ids of its arguments, four numbers |
| `cliques` | the same for a constant and what stands for it, where some are equal   |
| `terms`   | a constant: its id, its kind and its text                                |
| `program` | the rules, the predicates and the settings, as JSON                      |

The numbers of a fact are *summed*: all its rows together say whether it holds and was
given (1 or 0), and how often it was derived. An update appends what it changes, and
merging files changes no sum. Ids are those of `evermat.engines.spark.ids`: integers
are ids by themselves, other constants are looked up among the terms.
"""

from __future__ import annotations

import pyarrow as pa

from evermat.algebra import STORED_NUMBERS

PART = "part"
FACTS, CLIQUES, TERMS, PROGRAM = "facts", "cliques", "terms", "program"

RELATION = "relation"
STANDS_FOR = "≈"
"""The relation of the cliques: a constant, and the one that stands for it."""
NARROWEST = 4
"""Columns for arguments that a table has from the start."""


def arguments(width: int) -> list[str]:
    """The names of the columns that hold arguments."""
    return [f"c{at}" for at in range(width)]


def width_of(names: list[str]) -> int:
    """How many columns for arguments there are."""
    return sum(name[0] == "c" and name[1:].isdigit() for name in names)


def part_of(path: str) -> str:
    """The part to which a file belongs, which the name of its folder says."""
    return path.partition("/")[0].removeprefix(f"{PART}=")


def schema(width: int) -> pa.Schema:
    """The columns of the table."""
    return pa.schema(
        [
            (PART, pa.string()),
            (RELATION, pa.string()),
            *((name, pa.int64()) for name in arguments(width)),
            *((name, pa.int64()) for name in STORED_NUMBERS),
            ("id", pa.int64()),
            ("kind", pa.int32()),
            ("text", pa.string()),
        ]
    )
