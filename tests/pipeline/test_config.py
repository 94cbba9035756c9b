"""Configurations: what is wrong is told all at once, with place and advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evermat.io.files import FileMissingError
from evermat.pipeline import read_config
from evermat.pipeline.config import Argument, Limit
from evermat.pipeline.errors import ConfigError
from pipelines import configured

if TYPE_CHECKING:
    from pathlib import Path

WRONG = """\
[program]
rules = "missing.dl"

[engine]
names = "spark"

[engine.conf]
"spark.executor.memory" = ["4g"]

[[source]]
predicate = "edge"
path = "edge.csv"
header = "yes"
max_rejected = "many"

[source.columns]
from = { type = "text" }
to = { type = "integer", mni = 3 }

[[source]]
path = "data"

[[output]]
predicates = ["a", "b"]
path = "out"
mode = "delta"
"""


def problems(folder: Path, text: str) -> list[str]:
    (folder / "pipeline.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_config(folder / "pipeline.toml")
    return [problem.render() for problem in raised.value.problems]


def test_all_problems_are_told_with_their_places(tmp_path: Path) -> None:
    found = problems(tmp_path, WRONG)
    expected = [
        ("there is no file `missing.dl`", "2:1"),
        ("`header` of source 1 is not true or false", "13:1"),
        ("cannot be `text`", "17:10"),
        ("unknown entry `mni`", "18:26"),
        ("neither a number of rows nor a share", "14:1"),
        ("source 2 has no `format`", "20:1"),
        ("does not say what facts it gives", "20:1"),
        ("unknown entry `names`", "5:1"),
        ("`spark.executor.memory` of engine conf is not a text", "8:1"),
        ("cannot be `delta`", "26:1"),
        ("`b` would go where `a` goes", "25:1"),
    ]
    for message, place in expected:
        assert any(
            message in problem and f"pipeline.toml:{place}\n" in problem
            for problem in found
        ), (message, place, found)
    assert len(found) == len(expected)
    assert any("did you mean `name`?" in problem for problem in found)
    assert any("did you mean `min`?" in problem for problem in found)


def test_the_text_of_the_error_shows_all(tmp_path: Path) -> None:
    (tmp_path / "pipeline.toml").write_text("names = 1\n[stat]\n", encoding="utf-8")
    with pytest.raises(ConfigError) as raised:
        read_config(tmp_path / "pipeline.toml")
    assert "did you mean `name`?" in str(raised.value)
    assert "did you mean `state`?" in str(raised.value)
    assert raised.value.code == "EM801"


def test_what_is_not_toml_is_shown_where(tmp_path: Path) -> None:
    (found,) = problems(tmp_path, "[program]\nrules = rules.dl\n")
    assert "is not TOML: invalid value" in found
    assert "pipeline.toml:2:9" in found


def test_a_configuration_may_be_named_by_a_text(tmp_path: Path) -> None:
    config = configured(tmp_path, '[[source]]\npath = "x.nt"\n')
    assert read_config(str(config.file)).sources == config.sources


def test_a_configuration_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(FileMissingError):
        read_config(tmp_path / "pipeline.toml")
    with pytest.raises(ConfigError, match="is a folder"):
        read_config(tmp_path)


TABLE = '[[source]]\nformat = "table"\ntable = "t"\npredicate = "p"\n'
PREDICATES = '[[output]]\npredicates = ["a_b", "a b"]\n'
ARGUMENT = '[[source]]\npath = "x.csv"\npredicate = "p"\narguments = ["x", '
COLUMNS = '[[source]]\npath = "x.csv"\npredicate = "p"\n[source.columns]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[[source]]\nformat = "jdbc"\npredicate = "p"\n', "source 1 has no `url`"),
        ('[[source]]\npath = "x.json"\npredicate = "p"\n', "objects have no order"),
        ('[[source]]\npath = "x.csv"\nheader = false\npredicate = "p"', "no header"),
        ('[[output]]\npath = "out"\n', "name predicates, or a query"),
        ('[[output]]\npredicate = "p"\n', "output 1 has no `path`"),
        ('[[output]]\nquery = "p(?x)"\npath = "o"\nmode = "changes"', "not known"),
        ("source = 3\n", "`source` is not a list of tables"),
        ("[output]\n", "write [[output]] on a line of its own"),
        ("source = [3]\n", "`source` is not a list of tables"),
        (
            '[[source]]\npath = ["a.nt", "b.ttl.gz", "c.nt"]\n',
            "the paths of source 1 are of several formats: nt, ttl",
        ),
        ('[stream]\nfeed = "x"\n', "stream has no `format`"),
        ('[engine]\nalgorithm = "dredd"\n', "did you mean `dred`?"),
        ('[[source]]\npath = "x.nt"\narguments = ["s"]\n', "entry `arguments`"),
        (TABLE + '[source.update]\ninsert = "x"\n', "source 1 is a database"),
        (PREDICATES + 'path = "{predicate}"\n', "`a b` would go where `a_b`"),
        (ARGUMENT + '{ column = "a", language = "a b" }]\n', "tag of a language"),
        (ARGUMENT + '{ iri = "http://e/a b/{a}" }]\n', "is not an IRI"),
        (COLUMNS + 'a = { pattern = "(?!a)" }\n', "not a regular expression"),
        (ARGUMENT + '{ iri = "people/{a}" }]\n', "`people/{a}` is relative"),
        (COLUMNS + 'a = { type = "integer", min = "1" }\n', "is not a number"),
    ],
)  # fmt: skip
def test_single_problems(tmp_path: Path, text: str, message: str) -> None:
    assert any(message in problem for problem in problems(tmp_path, text))


def test_columns_that_arguments_name_must_be_declared(tmp_path: Path) -> None:
    (found,) = problems(
        tmp_path,
        '[[source]]\npath = "x.csv"\npredicate = "p"\narguments = ["names"]\n'
        '[source.columns]\nname = "string"\n',
    )
    assert "`names` is not among the columns of source 1" in found
    assert "did you mean `name`?" in found


def test_a_predicate_is_updated_in_one_way_only(tmp_path: Path) -> None:
    (found,) = problems(
        tmp_path,
        '[[source]]\nname = "a"\npath = "a.csv"\npredicate = "p"\n'
        '[[source]]\nname = "b"\npath = "b.csv"\npredicate = "p"\n'
        '[source.update]\ninsert = "new.csv"\n',
    )
    assert "only one of them has `update`" in found


def test_two_parts_cannot_have_the_same_name(tmp_path: Path) -> None:
    part = '[[source]]\nname = "a"\npath = "a.csv"\npredicate = "p"\n'
    (found,) = problems(tmp_path, part + part)
    assert "two of [[source]] are called `a`" in found
    assert "pipeline.toml:6:1" in found


def test_all_that_can_be_said_is_understood(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        'name = "all"',
        "[[source]]",
        'path = ["a.csv.gz", "s3://bucket/b.csv"]',
        'delimiter = ";"',
        'max_rejected = "1.5%"',
        "[source.columns]",
        'id = { type = "integer", min = 1, max = 9, required = false }',
        'day = { type = "date", min = 2024-01-01 }',
        'code = { pattern = "[A-Z]+", one_of = ["A", "B"] }',
        "[[source.facts]]",
        'predicate = "p"',
        'arguments = ["id", { iri = "http://e/{id}" }, { value = 7 },'
        ' { column = "code", language = "EN" }]',
        "[engine.conf]",
        "cores = 3",
        "fast = true",
    )
    (source,) = config.sources
    assert source.format == "csv"
    assert source.paths == (str(tmp_path / "a.csv.gz"), "s3://bucket/b.csv")
    assert source.limit == Limit(rows=None, share=0.015)
    number, day, code = source.columns
    assert (number.minimum, number.maximum, number.required) == (1, 9, False)
    assert day.minimum == "2024-01-01"
    assert code.one_of == ("A", "B")
    assert source.facts[0].arguments[2] == Argument("value", "7", 3)
    assert config.engine.conf == (("cores", "3"), ("fast", "true"))


def test_parts_are_named_by_what_they_are_about(tmp_path: Path) -> None:
    config = configured(
        tmp_path,
        '[[source]]\npath = "x.csv"\npredicate = "http://e.org/a"\n'
        '[[source]]\npath = "größe *.nt"\n'
        '[[output]]\npath = "out"\npredicate = "http://e.org/a"\n',
    )
    names = [source.name for source in config.sources]
    assert names == ["http_e.org_a", "größe"]
    assert [output.name for output in config.outputs] == ["http_e.org_a"]


def test_a_misspelt_predicate_is_one_problem_of_names(tmp_path: Path) -> None:
    found = problems(tmp_path, '[[source]]\npath = "two words.csv"\npredicat = "p"\n')
    assert not any("cannot be the name" in problem for problem in found)
    assert any("did you mean `predicate`?" in problem for problem in found)
