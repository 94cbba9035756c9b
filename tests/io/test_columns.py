"""Term columns: every Arrow type in, and the same values out."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.columns import (
    TERM,
    ArityMismatchError,
    MissingValueError,
    TermSyntaxError,
    as_terms,
    constants,
    kinds_in,
    natural,
    ntriples_texts,
    plain_texts,
    read_terms,
    rows_without_columns,
    table_of_rows,
    term_table,
    term_texts,
    values,
)
from evermat.values import (
    IRI,
    XSD,
    BlankNode,
    Constant,
    Kind,
    LangString,
    TypedLiteral,
    ValueConversionError,
    constant,
    literal,
    term_text,
)

DATE = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 5, 1500)  # noqa: DTZ001
IN_UTC = MOMENT.replace(tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("column", "python_values"),
    [
        (pa.array([1, -2]), [1, -2]),
        (pa.array([1, 2], pa.uint8()), [1, 2]),
        (pa.array([2**64 - 1], pa.uint64()), [2**64 - 1]),
        (pa.array([0.1, -0.0, 1e-5, 1e22, 3.0]), [0.1, -0.0, 1e-5, 1e22, 3.0]),
        (pa.array([1.5], pa.float32()), [1.5]),
        (pa.array([float("inf"), float("-inf")]), [float("inf"), float("-inf")]),
        (pa.array([True, False]), [True, False]),
        (pa.array(["a", "", "é\n"]), ["a", "", "é\n"]),
        (pa.array(["a"], pa.large_string()), ["a"]),
        (pa.array(["a"], pa.string_view()), ["a"]),
        (pa.array(["b", "a", "b"]).dictionary_encode(), ["b", "a", "b"]),
        (pa.array([7, 8, 7]).dictionary_encode(), [7, 8, 7]),
        (pa.array([Decimal("1.50"), Decimal("-0.00")]), [Decimal("1.5"), Decimal(0)]),
        (pa.array([10**30], pa.decimal128(38, 0)), [10**30]),
        (pa.chunked_array([[1], [2, 3]]), [1, 2, 3]),
        (pa.array([], pa.null()), []),
        (pa.array([DATE]), [DATE]),
    ],
    ids=str,
)
def test_as_terms_keeps_values(column: pa.Array, python_values: list[object]) -> None:
    terms = as_terms(column)
    assert terms.type == TERM
    assert constants(terms) == [constant(value) for value in python_values]
    assert list(map(repr, values(terms))) == [
        repr(constant(value).value) for value in python_values
    ]


@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.parametrize("moment", [MOMENT, IN_UTC, MOMENT.replace(microsecond=0)])
def test_agree_timestamps_are_written_as_python_writes_them(
    unit: str, moment: datetime.datetime
) -> None:
    zone = "UTC" if moment.tzinfo else None
    column = pa.array([moment], pa.timestamp(unit, zone))
    assert constants(as_terms(column)) == [constant(moment)]


def test_agree_offsets_of_zones_are_written_as_python_writes_them() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=1))
    moment = MOMENT.replace(tzinfo=zone)
    column = pa.array([moment], pa.timestamp("us", "+01:00"))
    assert constants(as_terms(column)) == [constant(moment)]


def test_agree_times_are_written_as_python_writes_them() -> None:
    times = [datetime.time(1, 2, 3, 4), datetime.time(1, 2, 3)]
    assert constants(as_terms(pa.array(times))) == [constant(time) for time in times]


@pytest.mark.parametrize(
    "moment",
    [
        DATE,
        MOMENT,
        IN_UTC,
        MOMENT.replace(microsecond=500_000),
        MOMENT.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=-2))),
        datetime.time(12, 30),
        datetime.time(12, 30, 0, 100, datetime.UTC),
    ],
    ids=str,
)
def test_dates_and_times_come_back_as_they_went_in(moment: object) -> None:
    assert constant(moment).value == moment
    assert type(constant(moment).value) is type(moment)
    assert values(_term_column([constant(moment)])) == [moment]


@pytest.mark.parametrize(
    ("datatype", "lexical", "preferred"),
    [
        ("dateTime", "2024-01-01T00:00:00+00:00", "2024-01-01T00:00:00Z"),
        ("dateTime", "2024-01-01T00:00:00.50", "2024-01-01T00:00:00.5"),
        ("dateTime", "2024-01-01T24:00:00", "2024-01-02T00:00:00"),
        ("date", "20240101", "2024-01-01"),
        ("time", "12:30", "12:30:00"),
    ],
)
def test_only_one_spelling_of_a_moment_is_a_value_of_python(
    datatype: str, lexical: str, preferred: str
) -> None:
    other = TypedLiteral(lexical, XSD + datatype)
    assert literal(lexical, XSD + datatype).value == other
    moment = literal(preferred, XSD + datatype)
    assert constant(moment.value) == moment
    assert not isinstance(moment.value, TypedLiteral)


@pytest.mark.parametrize("lexical", ["-0044-03-15", "12024-02-29", "soon", ""])
def test_dates_that_python_does_not_have_stay_literals(lexical: str) -> None:
    value = literal(lexical, XSD + "date").value
    assert value == TypedLiteral(lexical, XSD + "date")


def test_nanoseconds_are_not_cut_off() -> None:
    column = pa.array([1], pa.timestamp("ns"))
    assert values(as_terms(column)) == [
        TypedLiteral("1970-01-01T00:00:00.000000001", XSD + "dateTime")
    ]


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Kolkata"])
def test_nanoseconds_of_one_moment_change_no_other(zone: str | None) -> None:
    moments = [1_704_067_200_123_456_000, 1_704_067_200_000_000_789]
    column = pa.array(moments, pa.timestamp("ns", zone))
    (alone,) = constants(as_terms(column[:1]))
    assert constants(as_terms(column))[0] == alone
    assert len(constants(as_terms(column))[1].text) == len(alone.text) + 3
    times = pa.array([123_456_000, 789], pa.time64("ns"))
    assert values(as_terms(times))[0] == datetime.time(0, 0, 0, 123456)


def test_nulls_are_refused_with_their_row() -> None:
    with pytest.raises(MissingValueError, match="row 3 has no value") as caught:
        as_terms(pa.array([1, 2, None]))
    assert caught.value.row == 3


def test_nulls_are_refused_with_the_row_of_the_table_and_the_column() -> None:
    table = pa.table({"x": pa.chunked_array([["a", "b"], ["c", None]])})
    with pytest.raises(MissingValueError, match="row 4 has no value in column `x`"):
        term_table(table)


def test_nulls_in_dictionaries_and_halves_of_terms_are_refused() -> None:
    dictionary = pa.DictionaryArray.from_arrays([0, 1], ["a", None])
    with pytest.raises(MissingValueError, match="row 2"):
        as_terms(dictionary)
    halves = pa.array([{"kind": 0, "text": "a"}, {"kind": 0, "text": None}], TERM)
    with pytest.raises(MissingValueError, match="row 2"):
        as_terms(halves)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1]]),
        pa.array([b"x"]),
        pa.array([{"a": 1}]),
        pa.array([datetime.timedelta(1)]),
    ],
    ids=lambda column: str(column.type),
)
def test_types_without_constants_are_refused(column: pa.Array) -> None:
    with pytest.raises(ValueConversionError, match="column `x` of Arrow type"):
        as_terms(column, name="x")


def test_extension_types_are_what_they_mean() -> None:
    bits = pa.array([1, 0], pa.int8())
    truths = pa.ExtensionArray.from_storage(pa.bool8(), bits)
    assert values(as_terms(truths)) == [True, False]
    text = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}"]))
    assert values(as_terms(text)) == ["{}"]
    months = pa.array(pd.period_range("2024-01", periods=2, freq="M"))
    with pytest.raises(ValueConversionError, match="column `x` of Arrow type"):
        as_terms(months, name="x")


@pytest.mark.parametrize(
    ("python_values", "arrow_type", "plain"),
    [
        (["a", "b"], pa.string(), ["a", "b"]),
        ([1, -5], pa.int64(), [1, -5]),
        ([1, 10**30], pa.decimal128(38, 0), [1, 10**30]),
        ([10**39], pa.decimal256(76, 0), [10**39]),
        ([10**80], pa.string(), ["1" + "0" * 80]),
        ([Decimal("1.5"), Decimal("2.25")], pa.decimal128(38, 2), None),
        ([Decimal("1e-60"), Decimal(1)], pa.decimal256(76, 60), None),
        ([Decimal("1e-90")], pa.string(), None),
        ([1.5, float("nan")], pa.float64(), None),
        ([True, False], pa.bool_(), [True, False]),
        ([IRI("a:b"), BlankNode("x")], pa.string(), ["a:b", "_:x"]),
        ([BlankNode("x")], pa.string(), ["_:x"]),
        ([DATE], pa.date32(), [DATE]),
        ([MOMENT], pa.timestamp("us"), [MOMENT]),
        ([IN_UTC], pa.timestamp("us", "UTC"), [IN_UTC]),
        ([1, "1"], pa.string(), ["1", '"1"']),
        ([LangString("a", "en")], pa.string(), ['"a"@en']),
        ([TypedLiteral("x", "u:d")], pa.string(), ['"x"^^<u:d>']),
        (
            [TypedLiteral("soon", XSD + "date")],
            pa.string(),
            [f'"soon"^^<{XSD}date>'],
        ),
        ([], pa.string(), []),
    ],
    ids=str,
)
def test_natural_is_the_plainest_type_that_fits(
    python_values: list[object], arrow_type: pa.DataType, plain: list[object] | None
) -> None:
    terms = as_terms(table_of_rows([(value,) for value in python_values], 1)["c1"])
    column = natural(terms)
    assert column.type == arrow_type
    if plain is not None:
        assert column.to_pylist() == plain
    if not pa.types.is_string(arrow_type):
        assert as_terms(column).equals(terms)


CONSTANTS = st.one_of(
    st.text(),
    st.integers(),
    st.floats(allow_nan=False),
    st.booleans(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.builds(
        IRI, st.from_regex(r"[a-z]+:[a-z0-9/%# \n<>{}|^`\"\\é]*", fullmatch=True)
    ),
    st.builds(BlankNode, st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True)),
    st.builds(LangString, st.text(), st.sampled_from(["en", "de-at"])),
    st.builds(
        TypedLiteral, st.text(), st.sampled_from(["u:d", "u:d e", XSD + "gYear"])
    ),
).map(constant)


def _term_column(terms: list[Constant]) -> pa.Array:
    return as_terms(table_of_rows([(term,) for term in terms], 1)["c1"])


@given(st.lists(CONSTANTS))
def test_agree_term_texts_with_their_slow_form(terms: list[Constant]) -> None:
    expected = [term_text(term.kind, term.text) for term in terms]
    assert term_texts(_term_column(terms)).to_pylist() == expected


@given(st.lists(CONSTANTS))
def test_terms_read_back_what_was_written(terms: list[Constant]) -> None:
    column = _term_column(terms)
    assert constants(read_terms(term_texts(column))) == terms
    assert constants(read_terms(ntriples_texts(column))) == terms


@given(st.lists(CONSTANTS))
def test_values_are_those_of_constants(terms: list[Constant]) -> None:
    found = values(_term_column(terms))
    assert list(map(repr, found)) == [repr(term.value) for term in terms]


def test_characters_that_no_iri_may_have_are_escaped() -> None:
    column = _term_column([constant(IRI("a:b c>"))])
    assert term_texts(column).to_pylist() == ["<a:b\\u0020c\\u003E>"]
    assert ntriples_texts(column).to_pylist() == ["<a:b\\u0020c\\u003E>"]


def test_bare_texts_are_numbers_booleans_or_strings() -> None:
    texts = pa.array(["7", "007", "1.50", "1e3", "true", "anna", "", "-"])
    assert values(read_terms(texts)) == [
        7,
        7,
        Decimal("1.5"),
        1000.0,
        True,
        "anna",
        "",
        "-",
    ]


@pytest.mark.parametrize(
    "text",
    [
        *["<a b>", '"open', "_:", '"a"^^<b', '"a"b'],
        *[r'"\ud83d\ude00"', r'"\UFFFFFFFF"', r'"\q"'],
    ],
)
def test_texts_that_only_begin_like_terms_are_refused(text: str) -> None:
    with pytest.raises(TermSyntaxError) as caught:
        read_terms(pa.array(["x", "7", text]))
    assert caught.value.row == 3
    assert caught.value.text == text


def test_moments_that_are_written_in_two_ways_stay_apart() -> None:
    texts = ["2024-01-01T00:00:00Z", "2024-01-01T00:00:00+00:00"]
    terms = [literal(text, XSD + "dateTime") for text in texts]
    column = as_terms(table_of_rows([(term,) for term in terms], 1).column(0))
    assert len(set(natural(column).to_pylist())) == 2
    assert natural(column[:1]).type == pa.timestamp("us", "UTC")


def test_plain_texts_drop_datatypes_that_arrow_knows() -> None:
    assert plain_texts(_term_column([constant(DATE)])).to_pylist() == ["2024-02-29"]
    assert plain_texts(_term_column([constant(0.5)])).to_pylist() == ["0.5"]
    mixed = _term_column([constant(0.5), constant("a")])
    assert plain_texts(mixed).to_pylist() == ["0.5e0", '"a"']


def test_rows_of_one_type_become_plain_columns() -> None:
    table = table_of_rows([("a", 1, 1.5, True), ("b", 2, 2.5, False)], 4)
    assert table.schema.types == [pa.string(), pa.int64(), pa.float64(), pa.bool_()]


def test_rows_of_mixed_types_become_terms() -> None:
    table = table_of_rows([("a", 1), (IRI("u:x"), 2**70), (True, -1)], 2)
    assert table.schema.types == [TERM, TERM]
    assert values(table["c1"]) == ["a", IRI("u:x"), True]
    assert values(table["c2"]) == [1, 2**70, -1]


def test_rows_of_wrong_length_are_refused_with_their_number() -> None:
    with pytest.raises(ArityMismatchError, match="row 2 has 1 value, expected 2"):
        table_of_rows([(1, 2), (1,)], 2)


def test_a_string_is_not_a_row() -> None:
    with pytest.raises(ValueConversionError, match="row 1 is not a tuple or list"):
        table_of_rows(["ab"], 2)


def test_none_is_refused_with_row_and_column() -> None:
    with pytest.raises(MissingValueError, match="row 2 has no value in column `c2`"):
        table_of_rows([(1, 2), (1, None)], 2)


@pytest.mark.parametrize(
    "rows", [[("\ud800",)], [(IRI("\ud800"),)], [(1,), ("\ud800",)]]
)
def test_half_characters_are_refused(rows: list[tuple[object]]) -> None:
    with pytest.raises(ValueConversionError, match="not Unicode text"):
        table_of_rows(rows, 1)


def test_rows_without_columns_keep_their_number() -> None:
    assert table_of_rows([(), ()], 0).num_rows == 2
    assert rows_without_columns(3).num_rows == 3
    assert term_table(rows_without_columns(3)).num_rows == 3


def test_many_rows_go_there_and_back() -> None:
    rows = [(number, f"n{number % 1000}", number / 7) for number in range(200_000)]
    table = term_table(table_of_rows(rows, 3))
    back = [natural(column).to_pylist() for column in table.columns]
    assert list(zip(*back, strict=True)) == rows
    assert kinds_in(table["c2"].combine_chunks()) == {Kind.STRING}


def test_integers_of_any_size_go_there_and_back() -> None:
    rows = [(10**5000,), (-(10**5000),), (7,)]
    (column,) = term_table(table_of_rows(rows, 1)).columns
    assert [(value,) for value in values(column)] == rows
    assert [constant(value) for (value,) in rows] == constants(column)
    digits = "1" * 5000
    assert literal(digits, XSD + "integer") == Constant(Kind.INTEGER, digits)


@pytest.mark.parametrize(
    ("lexical", "datatype"),
    [
        ("\N{ARABIC-INDIC DIGIT ONE}", "integer"),
        ("\N{ARABIC-INDIC DIGIT ONE}.5", "decimal"),
        ("1_0", "integer"),
        ("1_0", "decimal"),
    ],
)
def test_digits_of_literals_are_plain(lexical: str, datatype: str) -> None:
    assert literal(lexical, XSD + datatype).kind is Kind.TYPED


@pytest.mark.parametrize(
    ("datatype", "least", "greatest"),
    [
        ("byte", -128, 127),
        ("short", -32768, 32767),
        ("int", -2147483648, 2147483647),
        ("long", -9223372036854775808, 9223372036854775807),
        ("unsignedByte", 0, 255),
        ("unsignedShort", 0, 65535),
        ("unsignedInt", 0, 4294967295),
        ("unsignedLong", 0, 18446744073709551615),
        ("nonNegativeInteger", 0, None),
        ("positiveInteger", 1, None),
        ("nonPositiveInteger", None, 0),
        ("negativeInteger", None, -1),
    ],
)
def test_integers_within_bounds_are_integers(
    datatype: str, least: int | None, greatest: int | None
) -> None:
    if least is not None:
        assert literal(str(least), XSD + datatype) == constant(least)
        assert literal(str(least - 1), XSD + datatype).kind is Kind.TYPED
    if greatest is not None:
        assert literal(str(greatest), XSD + datatype) == constant(greatest)
        assert literal(str(greatest + 1), XSD + datatype).kind is Kind.TYPED
    assert literal("1.0", XSD + datatype).kind is Kind.TYPED


@pytest.mark.parametrize(
    ("arrow_type", "number"),
    [
        (pa.timestamp("s"), 1 << 40),
        (pa.timestamp("s", "UTC"), 1 << 41),  # Arrow writes this as another year
        (pa.timestamp("ms", "Europe/Berlin"), -(1 << 52)),
        (pa.timestamp("us"), 1 << 62),
        (pa.date32(), 11_248_373),
        (pa.date32(), -12_687_064),
        (pa.date64(), 86_400_000 << 24),
        (pa.time32("s"), 86_400),
        (pa.time64("us"), -1),
    ],
)
def test_moments_beyond_the_calendar_are_refused(
    arrow_type: pa.DataType, number: int
) -> None:
    column = pa.chunked_array([[0], [number]], arrow_type)
    with pytest.raises(ValueConversionError, match="in column `at`") as caught:
        term_table(pa.table({"at": column}))
    assert caught.value.message.startswith("row 2 ")
    assert str(number) in caught.value.message
    assert caught.value.help is not None


def test_the_first_and_the_last_day_of_the_calendar() -> None:
    (column,) = term_table(
        pa.table({"day": pa.array([-12_687_063, 11_248_372], pa.date32())})
    ).columns
    assert lexical_forms(column) == ["-32766-01-01", "32766-12-31"]
    seconds = [number * 86_400 for number in (-12_687_063, 11_248_372)]
    for zone in ("UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland"):
        moments = pa.array(seconds, pa.timestamp("s", zone))
        (column,) = term_table(pa.table({"at": moments})).columns
        first, last = lexical_forms(column)
        assert first.startswith(("-32766-01-01T", "-32767-12-31T"))
        assert last.startswith(("32766-12-31T", "32766-12-30T"))


def lexical_forms(column: pa.ChunkedArray) -> list[str]:
    return [term.text.partition("\0")[2] for term in constants(column)]
