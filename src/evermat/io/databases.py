"""Tables of databases: PostgreSQL and SQLite by ADBC, and DuckDB.

| address                                             | reads                 |
| --------------------------------------------------- | --------------------- |
| `postgresql://user@host/database?table=employee`    | a table or view       |
| `postgresql://user@host/database?query=SELECT+…`    | the result of a query |
| `sqlite:///folder/file.db`, `duckdb:///file.duckdb` | the table `PREDICATE` |

Passwords are kept out of messages (`evermat.errors.redaction`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from evermat.errors import EvermatError
from evermat.errors.redaction import keep_secret, without_secrets

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


class DatabaseError(EvermatError, OSError):
    """A table of a database that cannot be read."""

    code: ClassVar[str] = "EM752"


def is_database(place: str) -> bool:
    """Return whether a place is an address of a supported database."""
    return urlsplit(place).scheme in _READERS if "://" in place else False


def read_database(address: str, table: str) -> pa.Table:
    """Return the rows of a table, or of the query in the address.

    Args:
        address: the database, and the table or query.
        table: the table to read if the address does not name one.

    Raises:
        DatabaseError: the database cannot be reached, or has no such table.
    """
    parts = urlsplit(address)
    if parts.password:
        keep_secret([parts.password, unquote(parts.password)])
    options = dict(parse_qsl(parts.query))
    query = options.pop("query", None)
    name = options.pop("table", table)
    if query is None:
        quoted = ".".join(f'"{part.replace(chr(34), "")}"' for part in name.split("."))
        query = f"SELECT * FROM {quoted}"  # noqa: S608  a name in quotes
    place = unquote(parts.path.removeprefix("/"))
    if parts.scheme not in _IN_FILES:
        place = urlunsplit(parts._replace(query=urlencode(options)))
    try:
        return _READERS[parts.scheme](place, query)
    except EvermatError:
        raise
    except Exception as error:  # noqa: BLE001  each driver has errors of its own
        reason = str(without_secrets(error)).strip().partition("\n")[0]
        shown = f"{parts.scheme}://{parts.hostname or ''}{parts.path}"
        raise DatabaseError(
            f"cannot read `{name}` of `{shown}`: {reason}",
            help="check the address, and who may read the table",
        ) from None


def _adbc(driver: str, address: str, query: str) -> pa.Table:
    with (
        _driver(driver).connect(address) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(query)
        found: pa.Table = cursor.fetch_arrow_table()
        return found


def _postgresql(address: str, query: str) -> pa.Table:
    return _adbc("adbc_driver_postgresql.dbapi", address, query)


def _sqlite(path: str, query: str) -> pa.Table:
    return _adbc("adbc_driver_sqlite.dbapi", f"file:{quote(path)}?mode=ro", query)


def _duckdb(path: str, query: str) -> pa.Table:
    with _driver("duckdb").connect(path, read_only=True) as connection:
        found: pa.Table = connection.sql(query).to_arrow_table()
        return found


def _driver(name: str) -> Any:  # noqa: ANN401  a module
    try:
        return import_module(name)
    except ImportError as error:
        raise DatabaseError(
            f"`{name.partition('.')[0]}` is not installed",
            help='install it with pip install "evermat[databases]"',
        ) from error


_IN_FILES = frozenset({"sqlite", "duckdb"})
"""`sqlite:///` is followed by a relative path, `sqlite:////` by an absolute one."""

_READERS: dict[str, Callable[[str, str], pa.Table]] = {
    "postgresql": _postgresql,
    "postgres": _postgresql,
    "sqlite": _sqlite,
    "duckdb": _duckdb,
}
