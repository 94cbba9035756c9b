"""A shop that recalls products: orders, parts of parts, and a network of suppliers.

It is set up for a pipeline: Parquet files, a configuration, and change files for a day.
Eleven rules have two recursions and two negations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy.typing as npt

    Numbers = npt.NDArray[np.int64]

RULES = """
with_part(?a, ?p) :- part_of(?p, ?a) .
with_part(?a, ?p) :- with_part(?a, ?b), part_of(?p, ?b) .
supplies(?s, ?t) :- delivers(?s, ?t) .
supplies(?s, ?t) :- supplies(?s, ?m), delivers(?m, ?t) .
suspect(?p) :- recalled(?s), makes(?s, ?p) .
suspect(?p) :- recalled(?s), supplies(?s, ?t), makes(?t, ?p) .
affected(?a) :- suspect(?a) .
affected(?a) :- with_part(?a, ?p), suspect(?p) .
exposed(?o, ?a) :- line(?o, ?a), affected(?a), not returned(?o, ?a) .
notify(?c, ?a) :- placed(?o, ?c), exposed(?o, ?a) .
overdue(?c) :- notify(?c, ?a), not notified(?c, ?a) .
"""

ORDERS = 220_000
"""Orders at scale 1, with about 1.15 million explicit facts."""
TABLES = (
    *("placed", "line", "returned", "part_of"),
    *("delivers", "makes", "recalled", "notified"),
)
OUTPUTS = ("notify", "overdue")
_SEED = 7


def orders(scale: float) -> dict[str, pa.Table]:
    """The tables of the shop, by predicate."""
    chance = np.random.default_rng(_SEED)
    count = max(200, round(ORDERS * scale))
    products, suppliers = max(60, count // 40), max(20, count // 400)
    customers = max(50, count // 3)
    order = np.arange(count)
    lines = np.repeat(order, 1 + order % 2)
    bought = _skewed(chance, lines.size, products)
    sent_back = chance.random(lines.size) < 0.05  # noqa: PLR2004  one in twenty
    return {
        "placed": _table(order, chance.integers(0, customers, count)),
        "line": _table(lines, _named("product", bought)),
        "returned": _table(lines[sent_back], _named("product", bought[sent_back])),
        "part_of": _table(
            *(_named("product", some) for some in _forest(chance, products, 2))
        ),
        "delivers": _table(
            *(_named("supplier", some) for some in _forest(chance, suppliers, 1))
        ),
        "makes": _table(
            _named("supplier", chance.integers(0, suppliers, products)),
            _named("product", np.arange(products)),
        ),
        "recalled": _table(
            _named("supplier", np.arange(suppliers // 2, suppliers, 40))
        ),
        "notified": _table(
            chance.integers(0, customers, count // 10),
            _named("product", _skewed(chance, count // 10, products)),
        ),
    }


def _skewed(chance: np.random.Generator, size: int, values: int) -> Numbers:
    """Return small numbers more often than large ones, none of them very often."""
    return (chance.random(size) ** 1.5 * values).astype(np.int64)


def _forest(
    chance: np.random.Generator, count: int, parents: int
) -> tuple[Numbers, Numbers]:
    """Edges from a number to smaller ones, not far apart in the order of levels."""
    children = np.repeat(np.arange(8, count), parents)
    found = (children * (0.2 + 0.3 * chance.random(children.size))).astype(np.int64)
    return children, found


def _named(word: str, numbers: Numbers) -> pa.Array:
    return pa.array(np.char.add(f"{word}-", numbers.astype(str)), pa.string())


def _table(*columns: pa.Array | Numbers) -> pa.Table:
    names = [f"column{at}" for at in range(1, 1 + len(columns))]
    return (
        pa.table([pa.array(column) for column in columns], names=names)
        .group_by(names)
        .aggregate([])
    )


def changes(tables: dict[str, pa.Table], size: int) -> tuple[pa.Table, pa.Table]:
    """Return the order lines that are inserted and deleted in a day."""
    chance = np.random.default_rng(_SEED + 1)
    lines = tables["line"]
    deleted = lines.take(pa.array(chance.choice(lines.num_rows, size, replace=False)))
    orders_ = chance.integers(0, tables["placed"].num_rows, size)
    products = tables["makes"].num_rows
    bought = _named("product", chance.integers(0, products, size))
    return _table(orders_, bought), deleted


def write_shop(folder: Path, scale: float, *, updated: int = 1000) -> int:
    """Write tables and the change files of a day; return the number of rows."""
    tables = orders(scale)
    for name, table in tables.items():
        (folder / "data").mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / "data" / f"{name}.parquet")
    size = min(updated, tables["line"].num_rows // 10)
    for name, table in zip(("new", "gone"), changes(tables, size), strict=True):
        (folder / "day" / name / "line").mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / "day" / name / "line" / "day.parquet")
    for name in tables:
        for side in ("new", "gone"):
            (folder / side / name).mkdir(parents=True, exist_ok=True)
    (folder / "rules.dl").write_text(RULES, encoding="utf-8")
    return sum(table.num_rows for table in tables.values())


def configuration(engine: str, conf: Mapping[str, str]) -> str:
    """Return the configuration of a pipeline over these files, as TOML."""
    text = ['[program]\nrules = "rules.dl"', f"[engine]\n{engine}", "[engine.conf]"]
    text += [f'"{name}" = "{value}"' for name, value in conf.items()]
    text.append('[state]\npath = "state"')
    for name in TABLES:
        text.append(f'[[source]]\npredicate = "{name}"\npath = "data/{name}.parquet"')
        text.append("[source.update]")
        text.append(f'insert = "new/{name}"\ndelete = "gone/{name}"')
    text += [
        f'[[output]]\npredicate = "{name}"\npath = "out/{name}"' for name in OUTPUTS
    ]
    return "\n".join(text) + "\n"
