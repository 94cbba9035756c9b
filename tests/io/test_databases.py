"""Facts come from tables of databases, PostgreSQL among them."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import pytest

from evermat.cli import run
from evermat.io.databases import DatabaseError, is_database, read_database

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


def test_other_places_are_files() -> None:
    assert not is_database("data/employee.csv")
    assert not is_database("s3://bucket/employee.csv")
    assert is_database("postgresql://host/database")
