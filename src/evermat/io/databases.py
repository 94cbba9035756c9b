"""Tables of databases: PostgreSQL and SQLite by ADBC, DuckDB, others by SQLAlchemy.

| address                                             | source or target      |
| --------------------------------------------------- | --------------------- |
| `postgresql://user@host/database?table=employee`    | a table or view       |
| `postgresql://user@host/database?query=SELECT+…`    | the result of a query |
| `sqlite:///folder/file.db`, `duckdb:///file.duckdb` | the table `PREDICATE` |
| `mysql+pymysql://user@host/database?table=employee` | a URL of SQLAlchemy   |

Passwords are kept out of messages (`evermat.errors.redaction`).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import pyarrow as pa

from evermat.columns import as_terms
from evermat.columns.terms import halves, single
from evermat.errors import EvermatError
from evermat.errors.redaction import keep_secret, without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from urllib.parse import SplitResult


class DatabaseError(EvermatError, OSError):
    """A table of a database that cannot be read or written."""

    code: ClassVar[str] = "EM752"


def is_database(place: str) -> bool:
    """Return whether a place is an address of a supported database."""
    if "://" not in place:
        return False
    scheme = urlsplit(place).scheme
    return scheme in _DATABASES or scheme in _DIALECTS or "+" in scheme


def read_database(address: str, table: str, *, query: str | None = None) -> pa.Table:
    """Return the rows of a table, or of the query in the address.

    Args:
        address: the database, and the table or query.
        table: the table to read if the address does not name one.
        query: a query to answer instead.

    Raises:
        DatabaseError: the database cannot be reached, or has no such table.
    """
    place = _Place.of(address, table)
    if query is not None:
        place = replace(place, query=query)
    with place.errors("read"):
        every = f"SELECT * FROM {place.quoted}"  # noqa: S608  in quotes
        return _database(place).read(place.query or every)


def relative_to(folder: Path, address: str) -> str:
    """Return the address, with a relative path of a file resolved against a folder."""
    scheme, _, rest = address.partition(":///")
    if scheme not in _IN_FILES or rest.startswith("/"):
        return address
    name, mark, options = rest.partition("?")
    place = quote(str(folder.absolute() / unquote(name)))
    return f"{scheme}:///{place}{mark}{options}"


def with_password(address: str, variable: str) -> str:
    """Return the address with the password from an environment variable.

    Raises:
        DatabaseError: the variable is not set.
    """
    password = os.environ.get(variable)
    if password is None:
        raise DatabaseError(
            f"the variable `{variable}` is not set",
            help="set it to the password of the database",
        )
    keep_secret([password])
    scheme, _, rest = address.partition("://")
    host = urlsplit(address).netloc
    user, at, place = host.rpartition("@")
    name = user.partition(":")[0] if at else ""
    return f"{scheme}://{name}:{quote(password, safe='')}@{place}{rest[len(host) :]}"


def write_database(address: str, table: str, rows: pa.Table) -> None:
    """Replace the rows of a table, in one transaction.

    A table that exists keeps its columns, indexes and rights; otherwise it is created.
    Other sessions read the old rows until the transaction is committed.

    Args:
        address: the database, and optionally the table.
        table: the table to write if the address does not name one.
        rows: ordinary Arrow columns, with the names of those of the table.

    Raises:
        DatabaseError: the database cannot be reached, or the rows do not fit.
    """
    place = _Place.of(address, table)
    if place.query is not None:
        raise DatabaseError(
            "a query cannot be written to", help="name a table: `?table=…`"
        )
    if not rows.num_columns:
        raise DatabaseError(
            f"facts without arguments cannot be written to `{place.table}`",
            reason="a table of a database has columns",
        )
    with place.errors("write"):
        _database(place).write(place, rows)


@dataclass(frozen=True, slots=True)
class _Place:
    """An address, taken apart."""

    parts: SplitResult
    url: str
    table: str
    query: str | None

    @classmethod
    def of(cls, address: str, table: str) -> _Place:
        parts = urlsplit(address)
        if parts.password:
            keep_secret([parts.password, unquote(parts.password)])
        options = dict(parse_qsl(parts.query))
        query = options.pop("query", None)
        name = options.pop("table", table)
        url = address.partition("?")[0] + ("?" + urlencode(options)) * bool(options)
        return cls(parts, url, name, query)

    @property
    def file(self) -> str:
        """The file after `sqlite:///`; an absolute path begins with one more slash."""
        return unquote(self.parts.path.removeprefix("/"))

    @property
    def quoted(self) -> str:
        """The name of the table, and of its schema, as SQL has it."""
        parts = (part.replace('"', "") for part in self.table.split("."))
        return ".".join(f'"{part}"' for part in parts)

    @contextmanager
    def errors(self, verb: str) -> Iterator[None]:
        """Errors of drivers as ours, without passwords."""
        try:
            yield
        except EvermatError:
            raise
        except Exception as error:  # noqa: BLE001  each driver has errors of its own
            reason = str(without_secrets(error)).strip().partition("\n")[0]
            scheme, host, path = self.parts.scheme, self.parts.hostname, self.parts.path
            raise DatabaseError(
                f"cannot {verb} `{self.table}` of `{scheme}://{host or ''}{path}`: "
                f"{reason}",
                help=f"check the address, and who may {verb} the table",
            ) from None


# --------------------------------------------------------------------------- drivers


class _Adbc:
    """A database with a driver of ADBC."""

    module: ClassVar[str]

    def __init__(self, place: _Place) -> None:
        self.place = place

    def address(self, *, to_write: bool) -> str:
        """Return the address for the driver."""
        raise NotImplementedError

    def fitting(self, rows: pa.Table) -> pa.Table:
        """Return the rows with types that the database supports."""
        return rows

    def read(self, query: str) -> pa.Table:
        dbapi = _driver(self.module)
        with (
            dbapi.connect(self.address(to_write=False)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(query)
            found: pa.Table = cursor.fetch_arrow_table()
            return found

    def write(self, place: _Place, rows: pa.Table) -> None:
        rows = self.fitting(rows)
        schema, _, name = place.table.rpartition(".")
        within = {"db_schema_name": schema} if schema else {}
        dbapi = _driver(self.module)
        with (
            dbapi.connect(self.address(to_write=True)) as connection,
            connection.cursor() as cursor,
        ):
            cursor.adbc_ingest(name, rows.slice(0, 0), mode="create_append", **within)
            cursor.execute(f"DELETE FROM {place.quoted}")  # noqa: S608  in quotes
            cursor.adbc_ingest(name, rows, mode="append", **within)
            connection.commit()


class _PostgreSql(_Adbc):
    module = "adbc_driver_postgresql.dbapi"

    def address(self, *, to_write: bool) -> str:  # noqa: ARG002  the same for both
        return self.place.url

    def read(self, query: str) -> pa.Table:
        found = super().read(query)
        columns = [_numbers(column) for column in found.columns]
        return pa.table(columns, names=found.column_names)


def _numbers(column: pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Convert a column of `numeric` to decimals; the driver returns strings."""
    if getattr(column.type, "type_name", "") != "numeric":
        return column
    texts = single(column).storage.dictionary_encode()
    known = [Decimal(text) for text in texts.dictionary.to_pylist()]
    # With a digit after the point, they are decimals whatever the values are.
    return pa.array([*known, Decimal("0.0")]).take(texts.indices)


class _Sqlite(_Adbc):
    module = "adbc_driver_sqlite.dbapi"

    def address(self, *, to_write: bool) -> str:
        mode = "rwc" if to_write else "ro"
        return f"file:{quote(self.place.file)}?mode={mode}"

    def fitting(self, rows: pa.Table) -> pa.Table:
        """Return the rows with decimals and moments, which SQLite lacks, as strings."""
        columns = [_decimals_and_moments_as_texts(column) for column in rows.columns]
        return pa.table(columns, names=rows.column_names)


def _decimals_and_moments_as_texts(
    column: pa.ChunkedArray,
) -> pa.Array | pa.ChunkedArray:
    if pa.types.is_decimal(column.type):
        return column.cast(pa.string())
    if pa.types.is_temporal(column.type):
        return halves(as_terms(column).field(1))[1]
    return column


class _DuckDb:
    def __init__(self, place: _Place) -> None:
        self.place = place

    def read(self, query: str) -> pa.Table:
        with _driver("duckdb").connect(self.place.file, read_only=True) as connection:
            found: pa.Table = connection.sql(query).to_arrow_table()
            return found

    def write(self, place: _Place, rows: pa.Table) -> None:
        name = place.quoted
        with _driver("duckdb").connect(place.file) as connection:
            connection.register("new_rows", rows)
            connection.begin()
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {name} AS FROM new_rows LIMIT 0"
            )
            connection.execute(f"DELETE FROM {name}")  # noqa: S608  in quotes
            connection.execute(f"INSERT INTO {name} BY NAME FROM new_rows")
            connection.commit()


class _SqlAlchemy:
    """Whatever SQLAlchemy knows, row by row."""

    def __init__(self, place: _Place) -> None:
        self.place = place

    def read(self, query: str) -> pa.Table:
        sql = _driver("sqlalchemy")
        engine = sql.create_engine(self.place.url)
        if self.place.query is None:
            query = f"SELECT * FROM {self._quoted(engine)}"  # noqa: S608  in quotes
        with engine.connect() as connection:
            found = connection.exec_driver_sql(query)
            names, rows = list(found.keys()), found.fetchall()
        columns = zip(*rows, strict=True) if rows else ([] for _ in names)
        return pa.table([pa.array(each) for each in columns], names=names)

    def write(self, place: _Place, rows: pa.Table) -> None:
        sql = _driver("sqlalchemy")
        engine = sql.create_engine(place.url)
        schema, _, name = place.table.rpartition(".")
        columns = [
            sql.Column(field.name, _sql_type(sql, field.type)) for field in rows.schema
        ]
        table = sql.Table(name, sql.MetaData(), *columns, schema=schema or None)
        with engine.begin() as connection:
            table.create(connection, checkfirst=True)
            connection.execute(table.delete())
            for batch in rows.to_batches(max_chunksize=10_000):
                connection.execute(table.insert(), batch.to_pylist())

    def _quoted(self, engine: Any) -> str:  # noqa: ANN401  an optional library
        quoted = engine.dialect.identifier_preparer.quote
        return ".".join(quoted(part) for part in self.place.table.split("."))


def _sql_type(sql: Any, arrow_type: pa.DataType) -> Any:  # noqa: ANN401  the same
    types = pa.types
    known = (
        (types.is_boolean, sql.Boolean),
        (types.is_integer, sql.BigInteger),
        (types.is_floating, sql.Double),
        (types.is_date, sql.Date),
        (types.is_timestamp, sql.DateTime),
    )
    if types.is_decimal(arrow_type):
        return sql.Numeric(arrow_type.precision, arrow_type.scale)
    return next((made for fits, made in known if fits(arrow_type)), sql.Text)


def _driver(name: str) -> Any:  # noqa: ANN401  a module
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        extra = "evermat[databases]" if package.startswith("adbc") else package
        raise DatabaseError(
            f"`{package}` is not installed",
            help=f'install it with pip install "{extra}"',
        ) from error


_DATABASES: dict[str, type[_PostgreSql | _Sqlite | _DuckDb]] = {
    "postgresql": _PostgreSql,
    "postgres": _PostgreSql,
    "sqlite": _Sqlite,
    "duckdb": _DuckDb,
}


_IN_FILES = frozenset({"sqlite", "duckdb"})
"""After `sqlite:///` comes a relative path, after `sqlite:////` an absolute one."""

_DIALECTS = frozenset({"mariadb", "mssql", "mysql", "oracle"})
"""Those of SQLAlchemy that are known without the name of a driver."""


def _database(place: _Place) -> _PostgreSql | _Sqlite | _DuckDb | _SqlAlchemy:
    return _DATABASES.get(place.parts.scheme, _SqlAlchemy)(place)
