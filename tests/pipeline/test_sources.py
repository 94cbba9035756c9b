"""Sources of all forms, on the embedded engine; Spark runs the same code in tasks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evermat.kb.inputs import FactTypeError
from evermat.pipeline import Pipeline, files
from evermat.pipeline.errors import (
    OutputError,
    RejectedRowsError,
    SchemaMismatchError,
    SourceError,
)
from evermat.rdf import RdfSyntaxError
from pipelines import OUTPUT, configured, rejected, rows, run, source

EDGES = [("a", "b"), ("b", "c")]
CLOSED = [("a", "b"), ("a", "c"), ("b", "c")]
SHORT = 'predicate = "edge"'


def csv(folder: Path, name: str = "edge.csv", header: str = "from,to\n") -> None:
    text = header + "".join(f"{x},{y}\n" for x, y in EDGES)
    (folder / name).write_text(text, encoding="utf-8")


def parquet(folder: Path, name: str = "edge.parquet") -> None:
    table = pa.table({"from": [x for x, _ in EDGES], "to": [y for _, y in EDGES]})
    pq.write_table(table, folder / name)


def test_csv(tmp_path: Path) -> None:
    csv(tmp_path)
    finished = run(source(tmp_path, SHORT, 'path = "edge.csv"'))
    assert rows(tmp_path / "out/reach") == CLOSED
    assert finished.report.sources[0]["rows"] == 2


def test_tsv_without_header(tmp_path: Path) -> None:
    (tmp_path / "edge.tsv").write_text("a\tb\nb\tc\n", encoding="utf-8")
    run(
        source(
            tmp_path,
            SHORT,
            'path = "edge.tsv"\nheader = false',
            'columns = { from = "string", to = "string" }',
        )
    )
    assert rows(tmp_path / "out/reach") == CLOSED


def test_packed_files_and_patterns(tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    with gzip.open(tmp_path / "data/edge1.csv.gz", "wt") as file:
        file.write("from,to\na,b\n")
    (tmp_path / "data/deep/edge2.csv").write_text("from,to\nb,c\n", encoding="utf-8")
    (tmp_path / "data/_SUCCESS").write_text("", encoding="utf-8")
    run(source(tmp_path, SHORT, 'path = "data/**/edge*.csv*"'))
    assert rows(tmp_path / "out/reach") == CLOSED
    run(source(tmp_path, SHORT, 'path = "data"\nformat = "csv"'))
    assert rows(tmp_path / "out/reach") == CLOSED


def test_parquet_rows_have_numbers(tmp_path: Path) -> None:
    table = pa.table({"from": ["a", None, "b"], "to": ["b", "x", "c"]})
    pq.write_table(table, tmp_path / "edge.parquet")
    config = source(tmp_path, SHORT, 'path = "edge.parquet"\nmax_rejected = 1')
    finished = run(config)
    assert rows(tmp_path / "out/reach") == CLOSED
    (row,) = rejected(config, finished, "edge")
    assert (row["file"], row["position"]) == ("edge.parquet", 1)
    assert (row["column"], row["reason"]) == ("from", "no value")
    assert json.loads(str(row["row"])) == {"from": None, "to": "x"}


def test_moments_that_no_calendar_has_are_set_aside(tmp_path: Path) -> None:
    moments = pa.array([0, 1 << 59, 253_402_300_800_000], pa.timestamp("ms"))
    table = pa.table({"x": [1, 2, 3], "at": moments})
    pq.write_table(table, tmp_path / "edge.parquet")
    config = source(
        tmp_path, 'predicate = "edge"', 'path = "edge.parquet"', "max_rejected = 1"
    )
    finished = run(config)
    (row,) = rejected(config, finished, "edge")
    assert (row["position"], row["column"]) == (1, "at")
    assert "value out of range" in str(row["reason"])
    assert finished.report.predicates["edge"] == {"facts": 2, "explicit": 2}


def test_json_lines(tmp_path: Path) -> None:
    lines = ['{"from": "a", "to": "b"}', '{"to": "c", "from": "b", "more": [1]}',
             "{", "7", '{"from": "z"}']  # fmt: skip
    (tmp_path / "edge.jsonl").write_text("\n".join(lines), encoding="utf-8")
    config = source(
        tmp_path,
        SHORT,
        'path = "edge.jsonl"\nmax_rejected = "60%"',
        'columns = { from = "string", to = "string" }',
    )
    finished = run(config)
    assert rows(tmp_path / "out/reach") == CLOSED
    reasons = [str(row["reason"]) for row in rejected(config, finished, "edge")]
    assert reasons[0].startswith("not JSON: ")
    assert reasons[1:] == ["not a JSON object", "no value"]


def test_json_that_is_odd(tmp_path: Path) -> None:
    lines = ['{"from": [1.50, "x", {"y": null}], "to": "\\u00e9"}',
             '{"from": "a", "to": "\\ud800"}', "[" * 100_000]  # fmt: skip
    (tmp_path / "edge.jsonl").write_text("\n".join(lines), encoding="utf-8")
    config = source(
        tmp_path,
        SHORT,
        'path = "edge.jsonl"\nmax_rejected = 2',
        'columns = { from = "string", to = "string" }',
    )
    finished = run(config)
    assert rows(tmp_path / "out/reach") == [('[1.50, "x", {"y": null}]', "é")]
    reasons = [str(row["reason"]) for row in rejected(config, finished, "edge")]
    assert reasons == [
        "not JSON: it has half of a pair of surrogates",
        "not JSON: it is nested too deeply",
    ]


def test_types_templates_and_constants(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "id,name,born,score,ok\n1,Ann Lee,1999-01-02,1.50,true\n2,Bo,,2,false\n",
        encoding="utf-8",
    )
    finished = run(
        configured(
            tmp_path,
            '[[source]]\npath = "p.csv"',
            "[source.columns]",
            'id = "integer"\nname = "string"\nscore = "double"\nok = "boolean"',
            'born = { type = "date", required = false }',
            '[[source.facts]]\npredicate = "person"',
            'arguments = [{ iri = "http://e/{name}/{id}" }, "score", "ok"]',
            '[[source.facts]]\npredicate = "born"\narguments = ["id", "born"]',
            '[[source.facts]]\npredicate = "label"',
            'arguments = [{ value = 7 }, { text = "{name} ({id})", language = "en" }]',
            '[[output]]\npredicates = ["person", "born", "label"]',
            'path = "out/{predicate}"',
        )
    )
    assert rows(tmp_path / "out/person") == [
        ("http://e/Ann%20Lee/1", 1.5, True),
        ("http://e/Bo/2", 2.0, False),
    ]
    ((number, born),) = rows(tmp_path / "out/born")
    assert (number, str(born)) == (1, "1999-01-02")
    assert rows(tmp_path / "out/label")[0] == (7, '"Ann Lee (1)"@en')
    assert finished.report.sources[0]["facts"] == {"person": 2, "born": 1, "label": 2}


def test_rows_that_break_rules_are_set_aside(tmp_path: Path) -> None:
    wrong = ["x,5,1", "7,99,1", "8,5,nope", "9,5", "10,-1,2", '11,"5,1']
    (tmp_path / "edge.csv").write_text(
        "\n".join(["from,to,sort", "1,2,1", *wrong, "2,3,2", ""]), encoding="utf-8"
    )
    config = source(
        tmp_path,
        SHORT,
        'path = "edge.csv"\narguments = ["from", "to"]\nmax_rejected = 6',
        "[source.columns]",
        'from = "integer"',
        'to = { type = "integer", min = 0, max = 10 }',
        'sort = { pattern = "[0-9]", one_of = ["1", "2"] }',
    )
    finished = run(config)
    assert rows(tmp_path / "out/reach") == [(1, 2), (1, 3), (2, 3)]
    found = rejected(config, finished, "edge")
    assert [row["row"] for row in found] == wrong
    assert [row["reason"] for row in found] == [
        "`x` is not an integer",
        "`99` is above 10",
        "`nope` does not match [0-9]",
        "2 columns where there should be 3",
        "`-1` is below 0",
        "a quote that is not closed in its line",
    ]
    text = (tmp_path / "edge.csv").read_bytes()
    for row in found:
        assert text[int(str(row["position"])) :].startswith(str(row["row"]).encode())


def test_a_line_of_csv_means_the_same_wherever_it_is(tmp_path: Path) -> None:
    good = ['1,""', '2,"b"', '3,c "d"']
    wrong = ['4,"e', "5,", "6,f\rg", '"7,h', '8,"i']
    for order in (good + wrong, wrong + good, wrong[:2] + good + wrong[2:]):
        text = "\n".join(["from,to", *order])
        (tmp_path / "edge.csv").write_bytes(text.encode())
        config = source(tmp_path, SHORT, 'path = "edge.csv"\nmax_rejected = "all"')
        finished = run(config)
        assert rows(tmp_path / "out/reach") == [("1", ""), ("2", "b"), ("3", 'c "d"')]
        found = rejected(config, finished, "edge")
        assert [row["row"] for row in found] == wrong
        assert [str(row["reason"])[:8] for row in found] == [
            "a quote ", "no value", "a line e", "a quote ", "a quote ",
        ]  # fmt: skip


def test_bounds_are_about_numbers_and_moments(tmp_path: Path) -> None:
    lines = ["3,2019-12-31T22:00:00Z", "x,2020-02-01T00:00:00Z",
             "0,2020-02-01T00:00:00Z", "4,2021-01-01T00:00:00.5Z"]  # fmt: skip
    (tmp_path / "edge.csv").write_text("\n".join(["from,to", *lines]))
    config = source(
        tmp_path,
        SHORT,
        'path = "edge.csv"\nmax_rejected = "all"\n[source.columns]\nfrom = { min = 1 }',
        'to = { type = "datetime", min = 2020-01-01T00:00:00+02:00, '
        "max = 2021-01-01T00:00:00Z }",
    )
    finished = run(config)
    assert [str(row["reason"]) for row in rejected(config, finished, "edge")] == [
        "`x` is not a number",
        "`0` is below 1",
        "`2021-01-01T00:00:00.5Z` is above 2021-01-01T00:00:00Z",
    ]


def test_fractions_of_seconds_are_compared_by_value(tmp_path: Path) -> None:
    lines = ["a,2020-01-01T00:00:00.25Z", "b,2020-01-01T00:00:00.5Z",
             "c,2020-01-01T00:00:00.55Z", "d,2020-01-01T00:00:00Z"]  # fmt: skip
    (tmp_path / "edge.csv").write_text("\n".join(["from,to", *lines]))
    config = source(
        tmp_path,
        SHORT,
        'path = "edge.csv"\nmax_rejected = "all"\n[source.columns]\nfrom = "string"',
        'to = { type = "datetime", min = 2020-01-01T00:00:00.5Z }',
    )
    wrong = rejected(config, run(config), "edge")
    assert sorted(str(row["row"])[0] for row in wrong) == ["a", "d"]


def test_the_report_shows_what_each_rule_costs_if_asked(tmp_path: Path) -> None:
    csv(tmp_path)
    config = source(tmp_path, SHORT, 'path = "edge.csv"')
    plain = Pipeline(config).run()
    assert plain.report.profile == []
    finished = Pipeline(config, is_profiled=True).run()
    rules = {each["rule"]: each for each in finished.report.profile}
    assert rules["reach(?x, ?y) :- edge(?x, ?y) ."]["instances"] == 2
    page = Path(finished.page).read_text(encoding="utf-8")
    assert "<h2>Rules</h2>" in page
    assert "edge(?x, ?y): 2 matches" in page


DECLARED = """[program]
text = '''
@declare age(who: string, years: integer) .
@declare code(who: string, code: string) .
old(?who) :- age(?who, ?years), ?years > 60 .
'''
[[output]]
predicates = ["old"]
path = "out/{predicate}"
[[source]]
path = "age.csv"
max_rejected = "all"
"""


def test_declared_types_hold_for_sources(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("years,who\n70,ann\n007,bob\nmany,cem\n")
    config = configured(tmp_path, DECLARED, 'predicate = "age"')
    finished = run(config)
    assert rows(tmp_path / "out/old") == [("ann",)]
    (wrong,) = rejected(config, finished, "age")
    assert wrong["reason"] == "`many` is not an integer"


def test_declared_types_give_way_to_those_of_the_source(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("who,years\nann,70\n")
    columns = 'columns = { who = "string", years = "double" }'
    config = configured(tmp_path, DECLARED, 'predicate = "age"', columns)
    with pytest.raises(FactTypeError, match=r"70\.0e0.* not of type `integer`"):
        run(config)


def test_a_column_that_is_declared_in_two_ways_stays_text(tmp_path: Path) -> None:
    (tmp_path / "age.csv").write_text("who,years\nann,70\n")
    both = """
    facts = [
      { predicate = "age", arguments = ["who", "years"] },
      { predicate = "code", arguments = ["who", "years"] },
    ]
    """
    with pytest.raises(FactTypeError, match=r"\"70\".* not of type `integer`"):
        run(configured(tmp_path, DECLARED, both))


BIG = 2**53
"""From here on floats do not tell neighbouring integers apart."""


@pytest.mark.parametrize(
    ("bounds", "fine", "wrong"),
    [
        (f"min = {BIG + 1}", [BIG + 1, BIG + 2], [BIG, -BIG, 0]),
        (f"max = {BIG}", [BIG, -BIG], [BIG + 1]),
        (f'type = "integer", max = {10**400}', [10**400, 5], [10**400 + 1]),
        (f'type = "integer", min = {-(10**400)}', [-(10**400)], [-(10**400) - 1]),
        ("min = 0.1", ["0.1", "0.10000000000000000001"], ["0.09999999999999999999"]),
        (
            'type = "decimal", max = 0.12345678901234567891',
            ["0.12345678901234567891"],
            ["0.12345678901234567892"],
        ),
        ('type = "double", min = 0.1, max = 1e3', ["0.1", "1000"], ["0.09", "1000.1"]),
        ("max = 1.5e0", ["1.50", "-inf"], ["1.5000000000000000000000001", "inf"]),
    ],
)
def test_bounds_are_exact(
    tmp_path: Path, bounds: str, fine: list[object], wrong: list[object]
) -> None:
    (tmp_path / "edge.csv").write_text("\n".join(map(str, ["n", *fine, *wrong])))
    config = source(
        tmp_path,
        'predicate = "n"',
        'path = "edge.csv"\nmax_rejected = "all"\n[source.columns]',
        f"n = {{ {bounds} }}",
    )
    finished = run(config)
    reasons = [str(row["reason"]) for row in rejected(config, finished, "n")]
    assert len(reasons) == len(wrong)
    assert all("below" in reason or "above" in reason for reason in reasons)


def test_iris_are_full(tmp_path: Path) -> None:
    names = [
        "http://e.org/a",
        "<urn:x:b>",
        "mailto:c@e.org",
        "alice",
        "/a",
        "_:b",
        "a/b:c",
    ]
    (tmp_path / "edge.csv").write_text("\n".join(["n", *names]))
    config = source(
        tmp_path,
        'predicate = "n"',
        'path = "edge.csv"\nmax_rejected = "all"\n[source.columns]\nn = "iri"',
    )
    finished = run(config)
    assert [str(row["reason"]) for row in rejected(config, finished, "n")] == [
        f"`{name}` is not a full IRI" for name in names[3:]
    ]


def test_too_many_wrong_rows_fail_the_run(tmp_path: Path) -> None:
    (tmp_path / "edge.csv").write_text("from,to\na,b\nb,\n", encoding="utf-8")
    with pytest.raises(RejectedRowsError, match="1 of 2 rows of source `edge`") as info:
        run(source(tmp_path, SHORT, 'path = "edge.csv"'))
    assert "edge.csv, line 3, byte 12" in info.value.message
    assert info.value.__notes__ == [" = step: read source edge"]
    (side,) = tmp_path.glob("rejected/*/edge.parquet")
    assert pq.read_table(side, partitioning=None).num_rows == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("size", [1, 7, 16, 64])
def test_lines_are_read_once_however_files_are_cut(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SPLIT_BYTES", size)
    monkeypatch.setattr(files, "BYTES_AT_ONCE", max(3, size // 2))
    text = "\n".join(["alpha", "", "b", "gamma delta", "ö" * 9, "z"]) + "\n"
    (tmp_path / "lines").write_text(text, encoding="utf-8")
    found = files.find_files([str(tmp_path / "lines")])
    read: list[tuple[int, str]] = []
    for split in files.splits_of(found):
        for lines in files.lines_of(split):
            read += zip(
                lines.positions.to_pylist(), lines.texts.to_pylist(), strict=True
            )
    assert [line for _, line in read] == [line for line in text.split("\n") if line]
    data = text.encode()
    assert all(data[at:].startswith(line.encode()) for at, line in read)


@pytest.mark.parametrize("size", [1, 300, 100_000])
def test_row_groups_are_read_once_however_files_are_cut(
    tmp_path: Path, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SPLIT_BYTES", size)
    ends = [f"n{at}" if at % 9 else None for at in range(100)]
    table = pa.table({"from": range(100), "to": ends})
    pq.write_table(table, tmp_path / "edge.parquet", row_group_size=7)
    config = source(tmp_path, SHORT, 'path = "edge.parquet"\nmax_rejected = 12')
    finished = run(config)
    assert len(rows(tmp_path / "out/reach")) == 88
    aside = rejected(config, finished, "edge")
    assert [row["position"] for row in aside] == list(range(0, 100, 9))


def test_files_of_parquet_have_the_same_columns(tmp_path: Path) -> None:
    parquet(tmp_path, "a.parquet")
    pq.write_table(pa.table({"to": ["c"], "other": ["d"]}), tmp_path / "b.parquet")
    with pytest.raises(SchemaMismatchError, match="are `to`, `other`, and"):
        run(source(tmp_path, SHORT, 'path = "*.parquet"'))
    facts = 'arguments = ["to", "to"]\ncolumns = { to = "string" }'
    run(source(tmp_path, SHORT, 'path = "*.parquet"', facts))
    assert rows(tmp_path / "out/reach") == [("b", "b"), ("c", "c")]


def test_rejected_rows_that_cannot_be_written(tmp_path: Path) -> None:
    csv(tmp_path, header="from,to\na,\n")
    (tmp_path / "file").touch()
    aside = 'max_rejected = 1\n[rejected]\npath = "file/rejected"'
    with pytest.raises(OutputError, match="cannot write") as caught:
        run(source(tmp_path, SHORT, 'path = "edge.csv"', aside))
    assert "[rejected]" in (caught.value.help or "")


def test_quoted_texts_over_several_lines(tmp_path: Path) -> None:
    text = 'from,to\n"a\nb","c"\n'
    (tmp_path / "edge.csv").write_text(text, encoding="utf-8")
    config = source(tmp_path, SHORT, 'path = "edge.csv"\nmultiline = true')
    run(config)
    assert rows(tmp_path / "out/reach") == [("a\nb", "c")]
    (tmp_path / "edge.csv").write_text(text + "d,e,f\n", encoding="utf-8")
    with pytest.raises(RejectedRowsError, match=r"one of them \(edge.csv\): 3 columns"):
        run(config)


# ------------------------------------------------------------------------------- RDF

TRIPLES = """\
<http://e/a> <http://e/p> <http://e/b> .
# a comment
<http://e/b> <http://e/p> "text"@en .
_:x <http://e/p> _:y .
"""
ALL = '[[output]]\npredicate = "triple"\npath = "out/triple"\n'


def test_broken_lines_of_ntriples_are_set_aside(tmp_path: Path) -> None:
    bad = b'<http://e/a> <http://e/p> "F\xfchrung" .\n'
    worse = b"<http://e/a> <http://e/p> .\n"
    (tmp_path / "data.nt").write_bytes(TRIPLES.encode() + bad + worse)
    config = configured(tmp_path, '[[source]]\npath = "data.nt"\nmax_rejected = 2', ALL)
    finished = run(config)
    assert len(rows(tmp_path / "out/triple")) == 3
    unicode, syntax = rejected(config, finished, "data")
    start = len(TRIPLES.encode())
    assert unicode["position"] == start
    assert unicode["reason"] == f"not UTF-8: byte 0xfc at position {start + 28}"
    assert syntax["row"] == worse.decode().strip()
    assert syntax["position"] == start + len(bad)
    strict = configured(tmp_path, '[[source]]\npath = "data.nt"', ALL)
    with pytest.raises(RejectedRowsError) as info:
        run(strict)
    line = TRIPLES.count("\n") + 1
    assert f"(data.nt, line {line}, byte {start}): not UTF-8" in info.value.message


def test_quads_lose_their_graphs(tmp_path: Path) -> None:
    lines = (
        '<http://e/a> <http://e/p> "x" <http://e/g> .\n<http://e/a> <http://e/p> 7 .\n'
    )
    (tmp_path / "data.nq").write_text(lines, encoding="utf-8")
    config = configured(tmp_path, '[[source]]\npath = "data.nq"\nmax_rejected = 1', ALL)
    finished = run(config)
    assert rows(tmp_path / "out/triple") == [("http://e/a", "http://e/p", "x")]
    assert len(rejected(config, finished, "data")) == 1


def test_many_broken_lines(tmp_path: Path) -> None:
    lines = ["<http://e/a> <http://e/p> <http://e/b> ."] + ["broken"] * 40
    (tmp_path / "data.nt").write_text("\n".join(lines), encoding="utf-8")
    config = configured(
        tmp_path, '[[source]]\npath = "data.nt"\nmax_rejected = "all"', ALL
    )
    assert run(config).report.sources[0]["rejected"] == 40
    assert len(rows(tmp_path / "out/triple")) == 1


def test_blank_nodes_of_two_files_are_different(tmp_path: Path) -> None:
    for name in ("a.nt", "b.nt"):
        text = "_:x <http://e/p> _:x .\n"
        (tmp_path / name).write_text(text, encoding="utf-8")
    run(configured(tmp_path, '[[source]]\npath = "*.nt"', ALL))
    assert len(rows(tmp_path / "out/triple")) == 2


def test_turtle_is_read_by_the_file(tmp_path: Path) -> None:
    text = "@prefix : <http://e/> . :a :p :b ; :q 'x' ."
    (tmp_path / "a.ttl").write_text(text, encoding="utf-8")
    config = configured(tmp_path, '[[source]]\npath = "a.ttl"', ALL)
    run(config)
    assert len(rows(tmp_path / "out/triple")) == 2
    (tmp_path / "a.ttl").write_text(text + "\n:a :p", encoding="utf-8")
    with pytest.raises(RdfSyntaxError, match=r"`a\.ttl` in line 2"):
        run(config)


# ------------------------------------------------------------------------- bad input


def test_a_source_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="there is no file"):
        run(source(tmp_path, SHORT, 'path = "edge.csv"'))


def test_a_source_that_cannot_be_reached(tmp_path: Path) -> None:
    config = source(tmp_path, SHORT, 'path = "nowhere://host/edge.csv"')
    with pytest.raises(SourceError, match="cannot reach `nowhere://host"):
        run(config)


def test_columns_that_do_not_match(tmp_path: Path) -> None:
    csv(tmp_path, header="from,too\n")
    columns = 'columns = { from = "string", to = "string" }'
    with pytest.raises(SchemaMismatchError, match="did you mean `too`"):
        run(source(tmp_path, SHORT, 'path = "edge.csv"', columns))
    table = pa.table({"from": [1.5], "to": [[1]]})
    pq.write_table(table, tmp_path / "edge.parquet")
    columns = 'columns = { from = "integer", to = "string" }'
    with pytest.raises(SchemaMismatchError) as raised:
        run(source(tmp_path, SHORT, 'path = "edge.parquet"', columns))
    assert "column `from` holds `double` where `integer`" in raised.value.message
    assert "column `to` holds `list" in raised.value.message


@pytest.mark.parametrize(
    "column",
    [pa.array(["b"]).dictionary_encode(), pa.array(["b"], pa.string_view())],
)
def test_texts_of_parquet_in_all_forms(tmp_path: Path, column: pa.Array) -> None:
    table = pa.table({"from": ["a"], "to": column, "none": pa.nulls(1)})
    pq.write_table(table, tmp_path / "edge.parquet")
    columns = (
        'from = "string"\nto = "string"\nnone = { type = "date", required = false }'
    )
    config = source(
        tmp_path,
        SHORT,
        'path = "edge.parquet"\narguments = ["from", "to"]',
        f"[source.columns]\n{columns}",
    )
    run(config)
    assert rows(tmp_path / "out/reach") == [("a", "b")]


def test_columns_that_cannot_be_facts(tmp_path: Path) -> None:
    table = pa.table({"from": ["a"], "to": [[1]]})
    pq.write_table(table, tmp_path / "edge.parquet")
    with pytest.raises(SchemaMismatchError, match="column `to` holds `list<"):
        run(source(tmp_path, SHORT, 'path = "edge.parquet"'))


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_columns_with_the_same_name(tmp_path: Path, form: str) -> None:
    table = pa.table([["1"], ["2"], ["3"]], names=["from", "from", "to"])
    if form == "csv":
        (tmp_path / "edge.csv").write_text("from,from,to\n1,2,3\n", encoding="utf-8")
    else:
        pq.write_table(table, tmp_path / "edge.parquet")
    config = source(tmp_path, SHORT, f'path = "edge.{form}"')
    with pytest.raises(SchemaMismatchError, match="several columns called `from`"):
        run(config)


def test_files_of_a_source_have_the_same_columns(tmp_path: Path) -> None:
    csv(tmp_path, "a.csv")
    csv(tmp_path, "b.csv", header="to,from\n")
    with pytest.raises(SchemaMismatchError, match=r"columns of `b\.csv` are"):
        run(source(tmp_path, SHORT, 'path = "*.csv"'))


def test_damaged_parquet(tmp_path: Path) -> None:
    parquet(tmp_path)
    data = (tmp_path / "edge.parquet").read_bytes()
    (tmp_path / "edge.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(SourceError, match="cannot be read as Parquet") as raised:
        run(source(tmp_path, SHORT, 'path = "edge.parquet"'))
    assert raised.value.__notes__ == [" = step: read source edge"]


def test_packed_files_that_are_not(tmp_path: Path) -> None:
    csv(tmp_path, "edge.csv.gz")
    with pytest.raises(SourceError, match=r"edge\.csv\.gz"):
        run(source(tmp_path, SHORT, 'path = "edge.csv.gz"'))


def test_a_program_that_is_wrong_is_found_before_anything_is_read(
    tmp_path: Path,
) -> None:
    config = configured(
        tmp_path, '[program]\ntext = "p(?x) :- q(?y) ."', "[[source]]", SHORT,
        'path = "missing.csv"', OUTPUT,
    )  # fmt: skip
    with pytest.raises(ValueError, match="not bound by the body"):
        run(config)


def test_a_file_without_anything_has_no_columns(tmp_path: Path) -> None:
    (tmp_path / "edge.csv").write_text("")
    entries = ('path = "edge.csv"', 'predicate = "edge"')
    columns = 'columns = { from = "string", to = "string" }'
    with pytest.raises(SchemaMismatchError, match="match: there are no columns\n"):
        run(source(tmp_path, *entries, columns))


def test_types_that_drift_between_files_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1], "y": ["a"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"x": ["1"], "y": ["b"]}), tmp_path / "2.parquet")
    parts = ('predicate = "edge"', 'path = "*.parquet"')
    with pytest.raises(SchemaMismatchError, match="holds `integer` in `1"):
        run(source(tmp_path, *parts))
    run(source(tmp_path, *parts, '[source.columns]\nx = "string"\ny = "string"'))
    assert rows(tmp_path / "out/reach") == [("1", "a"), ("1", "b")]
    pq.write_table(pa.table({"x": pa.nulls(1), "y": ["b"]}), tmp_path / "2.parquet")
    run(source(tmp_path, *parts, "max_rejected = 1"))
    assert rows(tmp_path / "out/reach") == [(1, "a")]
