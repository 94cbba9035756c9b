"""Whether the first row of a text file holds names, and what is said if it may."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat import KnowledgeBase
from evermat.cli import OK, WRONG_INPUT
from evermat.cli import run as run_command
from evermat.columns import SwappedColumnsWarning
from evermat.io import MalformedFileError, UnknownColumnError, read_table
from evermat.io.headers import HeaderNamesError, HeaderWarning
from evermat.pipeline.errors import SchemaMismatchError
from pipelines import configured, rows, run

if TYPE_CHECKING:
    from pathlib import Path

DECLARED = "@declare person(name: string, age: integer) ."
RULE = "adult(?name) :- person(?name, ?age), ?age > 17 ."
PEOPLE = {("ann", 30), ("bob", 7)}
Shown = pytest.CaptureFixture[str]
on_both = pytest.mark.parametrize("engine", ["embedded", "reference"])


def written(folder: Path, text: str, name: str = "person.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# ------------------------------------------------------------------ declared columns


@on_both
@pytest.mark.parametrize(
    "text",
    [
        "name,age\nann,30\nbob,7\n",
        "age,name\n30,ann\n7,bob\n",
        "Age,NAME\n30,ann\n7,bob\n",
        '"AGE" ,name\n30,ann\n7,bob\n',
        "ann,30\nbob,7\n",
    ],
)
def test_declared_names_in_any_order_and_case(
    tmp_path: Path, text: str, engine: str
) -> None:
    kb = KnowledgeBase(DECLARED, engine=engine)
    kb.insert("person", written(tmp_path, text))
    assert set(kb.facts("person")) == PEOPLE
    kb.delete("person", written(tmp_path, text.replace(",", "\t"), "person.tsv"))
    assert not kb.count("person")


@pytest.mark.parametrize("header", ["age,name", "AGE,Name"])
def test_imported_files_are_read_alike(tmp_path: Path, header: str) -> None:
    written(tmp_path, f"{header}\n30,ann\n7,bob\n")
    program = written(tmp_path, f'{DECLARED} @import person "person.csv" .', "p.dl")
    assert set(KnowledgeBase(program).facts("person")) == PEOPLE


def test_columns_that_an_import_chooses_are_not_sorted_again(tmp_path: Path) -> None:
    written(tmp_path, "years,age,name\n1,30,ann\n2,7,bob\n")
    options = '{columns = "name, years", header = "true"}'
    program = f'{DECLARED} @import person "person.csv" {options} .'
    path = written(tmp_path, program, "p.dl")
    assert set(KnowledgeBase(path).facts("person")) == {("ann", 1), ("bob", 2)}
    options = '{columns = "age, name", header = "true"}'
    program = '@declare person(name: any, age: any) . @import person "person.csv" '
    path = written(tmp_path, f"{program} {options} .", "p.dl")
    assert set(KnowledgeBase(path).facts("person")) == {(30, "ann"), (7, "bob")}


def test_some_of_the_declared_names_are_refused_with_both_lists(tmp_path: Path) -> None:
    kb = KnowledgeBase(DECLARED)
    with pytest.raises(HeaderNamesError) as caught:
        kb.insert("person", written(tmp_path, "years,name\n30,ann\n"))
    text = str(caught.value)
    assert "the first row is `years`, `name`" in text
    assert "the columns are declared `name`, `age`" in text
    assert "person.csv:1:1" in text
    assert "`--no-header`" in text
    assert not kb.count("person")


def test_values_that_are_called_like_columns_are_values(tmp_path: Path) -> None:
    kb = KnowledgeBase("@declare has(thing: any, name: any, value: any) .")
    path = written(tmp_path, "t1,name,Bob\nt1,colour,red\nt2,name,Eve\n", "has.csv")
    kb.insert("has", path)
    assert kb.count("has") == 3


def test_a_first_row_of_names_that_are_values_too_is_refused(tmp_path: Path) -> None:
    kb = KnowledgeBase("@declare edge(a: any, b: any) .")
    path = written(tmp_path, "b,a\na,c\nb,c\n", "edge.csv")
    with pytest.raises(HeaderNamesError, match="no values in the rows below"):
        kb.insert("edge", path)
    kb.insert("edge", read_table(path, header=False))
    assert set(kb.facts("edge")) == {("b", "a"), ("a", "c"), ("b", "c")}


def test_more_columns_than_are_declared_need_a_word(tmp_path: Path) -> None:
    path = written(tmp_path, "city,age,name\nRome,30,ann\n")
    with pytest.raises(MalformedFileError, match="`--header`"):
        KnowledgeBase(DECLARED).insert("person", path)
    table = read_table(path, columns=["name", "age"], header=True)
    assert table.to_pylist() == [{"name": "ann", "age": 30}]


def test_columns_of_parquet_are_chosen_in_any_case(tmp_path: Path) -> None:
    path = tmp_path / "person.parquet"
    pq.write_table(pa.table({"AGE": [30, 7], "Name": ["ann", "bob"]}), path)
    kb = KnowledgeBase(DECLARED)
    kb.insert("person", path)
    assert set(kb.facts("person")) == PEOPLE
    with pytest.raises(UnknownColumnError, match="has no column `years`"):
        read_table(path, columns=["years", "name"])
    pq.write_table(pa.table({"AGE": [30], "Age": [7], "name": ["ann"]}), path)
    with pytest.raises(MalformedFileError, match="several columns `age`"):
        kb.insert("person", path)


def test_files_of_souffle_have_no_header(tmp_path: Path) -> None:
    written(tmp_path, "age\tname\nann\tx\n", "person.facts")
    program = ".decl person(name: symbol, age: symbol)\n.input person\n"
    kb = KnowledgeBase(written(tmp_path, program, "p.dl"))
    assert set(kb.facts("person")) == {("age", "name"), ("ann", "x")}


# --------------------------------------------------------------- undeclared columns


@on_both
@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("name,years\nann,30\nbob,7\n", ""),
        ("id,born\nann,2001-02-03\nbob,2004-05-06\n", ""),
        ("site,title\nhttp://a.org/x,one\nhttp://a.org/y,two\n", ""),
        ("from,to\na,b\nb,c\n", ""),
        (",name,city\n0,ann,Rome\n1,bob,Bonn\n", ""),
        ("Name,Age\nann,old\nbob,young\n", "q(?name) :- person(?name, ?age) ."),
    ],
)
def test_a_first_row_that_looks_like_names_is_asked_about(
    tmp_path: Path, text: str, rules: str, engine: str
) -> None:
    kb = KnowledgeBase(rules, engine=engine)
    with pytest.warns(HeaderWarning, match="a fact. it looks like names") as found:
        kb.insert("person", written(tmp_path, text))
    assert kb.count("person") == 3
    assert "@declare person(" in str(found[0].message)
    assert found[0].filename == __file__


@pytest.mark.parametrize(
    "text",
    [
        "ann,30\nbob,7\n",
        "ann,bob\nbob,eve\n",
        "a,b\nb,c\n",
        "name,name\nann,30\n",
        "name,age\nname,30\n",
        "1,2\n3,4\n",
        "ann,\nbob,7\n",
        "green\n",
        "",
    ],
)
def test_other_first_rows_are_not_asked_about(tmp_path: Path, text: str) -> None:
    kb = KnowledgeBase(RULE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kb.insert("p", written(tmp_path, text))


def test_what_is_said_of_the_first_row_settles_it(tmp_path: Path) -> None:
    path = written(tmp_path, "name,years\nann,30\nbob,7\n")
    for header, count in ((True, 2), (False, 3)):
        kb = KnowledgeBase()
        kb.insert("person", read_table(path, header=header))
        assert kb.count("person") == count
    program = f'@import person "{path}" {{header = "true"}} .'
    assert KnowledgeBase(program, allow_paths=[tmp_path]).count("person") == 2
    with pytest.warns(HeaderWarning):
        KnowledgeBase(f'@import person "{path}" .', allow_paths=[tmp_path])


def test_files_with_names_in_another_order_are_warned_of(tmp_path: Path) -> None:
    kb = KnowledgeBase(RULE)
    path = tmp_path / "person.parquet"
    pq.write_table(pa.table({"age": [30], "name": ["ann"]}), path)
    with pytest.warns(SwappedColumnsWarning, match="rules have the variables"):
        kb.insert("person", path)


# ------------------------------------------------------------------ the command line


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, RULE, "rules.dl")
    written(tmp_path, f"{DECLARED} {RULE}", "declared.dl")
    return tmp_path


def asked(*options: str, rules: str = "rules.dl") -> int:
    command = ["query", rules, "person(?a, ?b)", "-f", "person.csv"]
    return run_command([*command, *options, "--engine", "reference"])


def test_the_command_asks_on_standard_error(folder: Path, capsys: Shown) -> None:
    written(folder, "name,years\nann,30\nbob,7\n")
    assert asked() == OK
    shown = capsys.readouterr()
    assert "HeaderWarning [EM907]" in shown.err
    assert "--header" in shown.err
    assert "EM907" not in shown.out
    for option, lines in (("--header", 3), ("--no-header", 4)):
        assert asked(option) == OK
        shown = capsys.readouterr()
        assert not shown.err
        assert len(shown.out.splitlines()) == lines


def test_the_command_reads_declared_names(folder: Path, capsys: Shown) -> None:
    written(folder, "AGE,name\n30,ann\n7,bob\n")
    assert asked(rules="declared.dl") == OK
    shown = capsys.readouterr()
    assert sorted(shown.out.splitlines()[1:]) == ["ann\t30", "bob\t7"]
    assert not shown.err
    written(folder, "years,name\n30,ann\n")
    assert asked(rules="declared.dl") == WRONG_INPUT
    assert "HeaderNamesError [EM705]" in capsys.readouterr().err


def test_the_command_compares_files_of_one_predicate(
    folder: Path, capsys: Shown
) -> None:
    written(folder, "name,years\nann,30\n")
    written(folder, "years,name\n30,ann\n", "more.csv")
    assert asked("-f", "person=more.csv", "--header") == OK
    assert capsys.readouterr().err.count("SwappedColumnsWarning [EM906]") == 1


def test_rows_of_updates_may_have_names(folder: Path, capsys: Shown) -> None:
    written(folder, "ann,30\n")
    written(folder, '[insert]\nperson = [{ age = 7, name = "bob" }]\n', "u.toml")
    command = ["run", "declared.dl", "-f", "person.csv", "--then", "u.toml"]
    assert run_command([*command, "--show", "3", "--engine", "reference"]) == OK
    assert 'person("bob", 7)' in capsys.readouterr().out


# ------------------------------------------------------------------------ pipelines


def people(
    folder: Path, *parts: str, rules: str = DECLARED
) -> list[tuple[object, ...]]:
    program = f"[program]\ntext = '''{rules} {RULE}'''\n"
    source = '[[source]]\npath = "person.csv"\npredicate = "person"\n'
    output = '[[output]]\npredicate = "person"\npath = "out"\n'
    run(configured(folder, program, source, *parts, output))
    return rows(folder / "out")


TYPES = 'columns = { age = "integer", name = "string" }'


def test_sources_go_to_declared_columns_by_name(tmp_path: Path) -> None:
    written(tmp_path, "age,name\n30,ann\n7,bob\n")
    assert people(tmp_path, TYPES) == sorted(PEOPLE)
    assert people(tmp_path, TYPES, 'arguments = ["name", "age"]') == sorted(PEOPLE)


def test_sources_with_other_names_are_refused(tmp_path: Path) -> None:
    written(tmp_path, "years,name\n30,ann\n")
    with pytest.raises(SchemaMismatchError, match="declared for `person` are `name`"):
        people(tmp_path)


def test_sources_in_another_order_than_in_rules_are_warned_of(tmp_path: Path) -> None:
    written(tmp_path, "age,name\n30,ann\n")
    columns = 'columns = { age = "integer", name = "integer" }\nmax_rejected = "all"'
    with pytest.warns(SwappedColumnsWarning, match="rules have the variables"):
        people(tmp_path, columns, rules="")


def test_a_header_that_there_should_not_be_is_asked_about(tmp_path: Path) -> None:
    written(tmp_path, "Age,name\n30,ann\n")
    with pytest.warns(HeaderWarning, match="leave out `header = false`"):
        people(tmp_path, TYPES, 'header = false\nmax_rejected = "all"')
