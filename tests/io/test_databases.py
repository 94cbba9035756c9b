"""Facts come from tables of databases, PostgreSQL among them."""

from __future__ import annotations

import datetime
import getpass
import os
import shutil
import socket
import sqlite3
import subprocess
from contextlib import closing
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from evermat import KnowledgeBase
from evermat.cli import run
from evermat.io import NotRowsError
from evermat.io.databases import (
    DatabaseError,
    is_database,
    read_database,
    write_database,
)
from evermat.pipeline import Pipeline
from evermat.pipeline.errors import ConfigError
from pipelines import configured

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES = """
@declare employee(name: string, boss: string) .
above(?x, ?y) :- employee(?x, ?y) .
above(?x, ?z) :- above(?x, ?y), employee(?y, ?z) .
"""
TABLE = """
CREATE TABLE employee (boss TEXT, name TEXT);
INSERT INTO employee VALUES ('eve', 'ann'), ('ann', 'bob');
"""


def postgres_tool(name: str) -> Path | None:
    """A program of PostgreSQL, which Debian keeps out of the way."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for home in homes:
        if (home / name).is_file():
            return home / name
    found = shutil.which(name)
    return None if found is None else Path(found)


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The address of a database that lives as long as the tests of this file."""
    initdb, server = postgres_tool("initdb"), postgres_tool("postgres")
    if initdb is None or server is None:
        pytest.skip("PostgreSQL is not installed (apt install postgresql)")
    folder = Path(mkdtemp(prefix="evermat-postgres-"))
    user = getpass.getuser()
    before: list[str] = []
    if os.geteuid() == 0:  # PostgreSQL does not run as root
        user = "postgres"
        shutil.chown(folder, user)
        before = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    data = str(folder / "data")
    make = [*before, str(initdb), "-D", data, "-A", "trust", "-U", "evermat", "-N"]
    subprocess.run(make, check=True, capture_output=True)
    command = [*before, str(server), "-D", data, "-p", str(port), "-k", str(folder)]
    command += ["-h", "127.0.0.1", "-F"]
    address = f"postgresql://evermat:secretword@127.0.0.1:{port}/postgres"
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _fill(address)
            yield address
        finally:
            process.terminate()
            process.wait(30)
            shutil.rmtree(folder, ignore_errors=True)


def _fill(address: str) -> None:
    import time  # noqa: PLC0415  while it starts

    from adbc_driver_postgresql import dbapi  # noqa: PLC0415  only where it is used

    end = time.monotonic() + 60
    while True:
        try:
            with dbapi.connect(address) as connection, connection.cursor() as cursor:
                for statement in filter(str.strip, TABLE.split(";")):
                    cursor.execute(statement)
                connection.commit()
                return
        except dbapi.Error:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def answered(
    tmp_path: Path, address: str, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    rules = tmp_path / "rules.dl"
    rules.write_text(RULES)
    arguments = ["query", str(rules), "above('bob', ?x)", "--facts"]
    assert run([*arguments, f"employee={address}", "--engine", "reference"]) == 0
    return sorted(capsys.readouterr().out.split())


def test_tables_of_postgresql_are_facts(
    postgres: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Columns go by name: the table has them the other way round.
    assert answered(tmp_path, postgres, capsys) == ["ann", "eve", "x"]
    query = "SELECT+boss,+name+FROM+employee+WHERE+name='bob'"
    assert answered(tmp_path, f"{postgres}?query={query}", capsys) == ["ann", "x"]


def test_errors_say_what_is_wrong_and_no_password(postgres: str) -> None:
    with pytest.raises(DatabaseError, match="nothing") as raised:
        read_database(f"{postgres}?table=nothing", "employee")
    assert "secretword" not in str(raised.value)
    with pytest.raises(DatabaseError, match="cannot read") as raised:
        read_database("postgresql://evermat:secretword@127.0.0.1:1/none", "employee")
    assert "secretword" not in str(raised.value)


def test_tables_of_sqlite_are_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "staff.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLE)
    assert answered(tmp_path, f"sqlite:///{path}", capsys) == ["ann", "eve", "x"]
    with pytest.raises(DatabaseError, match="none"):
        read_database(f"sqlite:///{path}", "none")


def test_tables_of_duckdb_are_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    duckdb = pytest.importorskip("duckdb")
    path = tmp_path / "staff.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(TABLE)
    assert answered(tmp_path, f"duckdb:///{path}", capsys) == ["ann", "eve", "x"]


# -------------------------------------------------------------------------- writing

ROWS = pa.table(
    {
        "name": ["ann", "bob"],
        "years": [30, 40],
        "share": [0.5, 1.5],
        "is_boss": [True, False],
        "born": [datetime.date(1990, 1, 31), datetime.date(1980, 2, 29)],
        "seen": pa.array([0, 1_767_225_600], pa.timestamp("s")).cast("timestamp[us]"),
        "pay": [Decimal("10.50"), Decimal("20.25")],
    }
)
NAMES = ["name", "years", "share", "is_boss", "born", "seen", "pay"]


def in_files(tmp_path: Path) -> list[str]:
    """Databases without a server."""
    duckdb = f"duckdb:///{tmp_path}/staff.duckdb"
    found = [f"sqlite:///{tmp_path}/staff.db"]
    if find_spec("duckdb"):
        found.append(duckdb)
    if find_spec("sqlalchemy"):
        found.append(f"sqlite+pysqlite:///{tmp_path}/other.db")
    return found


def check_writing(address: str) -> None:
    """Rows are replaced, columns go by name, and a failure leaves what was there."""
    write_database(address, "staff", ROWS)
    write_database(address, "staff", ROWS.slice(1).select(NAMES[::-1]))
    (row,) = read_database(address, "staff").select(NAMES).to_pylist()
    values = [str(value) for value in row.values()]
    assert values[:2] == ["bob", "40"]
    assert values[4] == "1980-02-29"
    assert values[5][:10] == "2026-01-01"
    assert float(row["pay"]) == 20.25
    with pytest.raises(DatabaseError, match="cannot write `staff`"):
        write_database(address, "staff", pa.table({"nobody": [1]}))
    assert read_database(address, "staff").num_rows == 1
    with pytest.raises(DatabaseError, match="without arguments"):
        write_database(address, "none", ROWS.select([]))
    with pytest.raises(DatabaseError, match="query"):
        write_database(f"{address}?query=SELECT+1", "none", ROWS)


def test_rows_are_written_to_postgresql(postgres: str) -> None:
    check_writing(postgres)
    staff = read_database(postgres, "staff")
    kb = KnowledgeBase()
    kb.insert("staff", staff)
    (row,) = kb["staff"]
    expected = tuple(ROWS.select(staff.column_names).slice(1).to_pylist()[0].values())
    assert row == expected


def test_rows_are_written_to_databases_in_files(tmp_path: Path) -> None:
    for address in in_files(tmp_path):
        check_writing(address)


def test_results_are_written_to_tables_of_their_predicates(tmp_path: Path) -> None:
    kb = KnowledgeBase("older(?x, ?y) :- age(?x, ?n), age(?y, ?m), ?n > ?m .")
    kb.insert("age", [("ann", 9), ("bob", 7)])
    address = f"sqlite:///{tmp_path}/ages.db"
    kb["older"].write(address)
    kb.query("age(?who, ?n)").write(f"{address}?table=all ages")
    assert read_database(address, "older").to_pylist() == [{"x": "ann", "y": "bob"}]
    assert read_database(address, "all ages").num_rows == 2


def test_the_command_line_writes_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, facts = tmp_path / "rules.dl", tmp_path / "employee.csv"
    rules.write_text(RULES)
    facts.write_text("bob,ann\nann,eve\n")
    address = f"sqlite:///{tmp_path}/out.db"
    command = [str(rules), "--facts", str(facts), "--engine", "reference"]
    assert run(["run", *command, "--out", address]) == 0
    assert "wrote 1 table to" in capsys.readouterr().out
    assert read_database(address, "above").num_rows == 3
    wanted = ["query", *command[:1], "above(?x, 'eve')", *command[1:]]
    assert run([*wanted, "--out", f"{address}?table=under"]) == 0
    assert read_database(address, "under").num_rows == 2


def test_a_store_is_updated_from_a_table(
    postgres: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules, kept = tmp_path / "rules.dl", str(tmp_path / "kept")
    rules.write_text(RULES)
    begin = ["run", str(rules), "--facts", f"employee={postgres}", "--store", kept]
    assert run(begin) == 0
    write_database(postgres, "tonight", pa.table({"name": ["bob"], "boss": ["eve"]}))
    tonight = f"employee={postgres}?table=tonight"
    assert run(["update", "--store", kept, "--replace", tonight]) == 0
    capsys.readouterr()
    assert run(["query", "--store", kept, "above(?x, ?y)"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["bob\teve"]


PIPELINE = """
[program]
text = '''{rules}'''
[[source]]
format = "database"
predicate = "employee"
{source}
[[output]]
predicate = "above"
format = "database"
{output}
"""


def test_pipelines_read_and_write_databases(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_WORD", "secretword")
    server = postgres.replace(":secretword", "")
    entries = 'password_variable = "DATABASE_WORD"'
    config = configured(
        tmp_path,
        PIPELINE.format(
            rules=RULES,
            source=f'url = "{server}"\ntable = "employee"\n{entries}',
            output=f'url = "{server}"\n{entries}',
        ),
    )
    finished = Pipeline(config).run()
    assert finished.report.sources[0]["rows"] == 2
    assert read_database(postgres, "above").num_rows == 3
    monkeypatch.delenv("DATABASE_WORD")
    with pytest.raises(DatabaseError, match="`DATABASE_WORD` is not set"):
        Pipeline(config).run()


def test_pipelines_take_files_of_databases_beside_them(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "staff.db")) as connection:
        connection.executescript(TABLE)
    config = configured(
        tmp_path,
        PIPELINE.format(
            rules=RULES,
            source='url = "sqlite:///staff.db"\nquery = "SELECT * FROM employee"',
            output='url = "sqlite:///out.db"\ntable = "over"',
        ),
    )
    Pipeline(config).run()
    assert read_database(f"sqlite:///{tmp_path}/out.db", "over").num_rows == 3


@pytest.mark.parametrize(
    ("source", "output", "problem"),
    [
        ('url = "jdbc:postgresql://host/db"\ntable = "t"', "", "is no address"),
        ('url = "sqlite:///a.db"', "", "needs `table` or `query`"),
        ('table = "t"', "", "has no `url`"),
        ('url = "sqlite:///a.db"\ntable = "t"', 'mode = "changes"', "in full"),
    ],
)
def test_wrong_configurations_of_databases(
    tmp_path: Path, source: str, output: str, problem: str
) -> None:
    output = f'url = "sqlite:///b.db"\n{output}'
    text = PIPELINE.format(rules=RULES, source=source, output=output)
    with pytest.raises(ConfigError, match=problem):
        configured(tmp_path, text)


def test_columns_of_numeric_are_decimals_whatever_they_hold(postgres: str) -> None:
    query = "SELECT x::numeric FROM (VALUES (1), (2), (NULL)) AS t(x)"
    column = read_database(postgres, "none", query=query).column(0)
    assert column.to_pylist() == [Decimal("1.0"), Decimal("2.0"), None]


def test_other_places_are_files() -> None:
    assert not is_database("data/employee.csv")
    assert not is_database("s3://bucket/employee.csv")
    assert is_database("postgresql://host/database")
    assert is_database("mysql+pymysql://host/database")
    assert is_database("mysql://host/database")


def test_an_address_is_not_rows() -> None:
    with pytest.raises(NotRowsError, match="read_database") as caught:
        KnowledgeBase().insert("employee", "postgresql://user:secretword@host/hr")
    assert "secretword" not in str(caught.value)


def test_a_driver_that_is_missing_is_named() -> None:
    with pytest.raises(DatabaseError, match=r"nodriver|sqlalchemy"):
        read_database("postgresql+nodriver://host/database", "employee")
