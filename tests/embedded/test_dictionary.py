from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evermat.algebra import Column, Pattern, Region
from evermat.columns import constants, table_of_rows
from evermat.engines.embedded.dictionary import LARGEST, SMALLEST, UNKNOWN, Dictionary
from evermat.engines.embedded.engine import EmbeddedEngine
from evermat.values import IRI, BlankNode, LangString, TypedLiteral, Value, constant

VALUES = st.one_of(
    st.text(max_size=20),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3),
    st.builds(IRI, st.text(max_size=12)),
    st.builds(BlankNode, st.text(max_size=5)),
    st.builds(LangString, st.text(max_size=8), st.sampled_from(["en", "de"])),
    st.builds(TypedLiteral, st.text(max_size=8), st.just("http://example.org/type")),
)


@pytest.mark.parametrize("number", [SMALLEST, SMALLEST + 5, -(10**9), LARGEST, 0])
def test_an_integer_has_one_id_whether_it_comes_as_a_number_or_as_a_term(
    number: int,
) -> None:
    dictionary = Dictionary()
    (as_number,) = dictionary.encode(pa.array([number]))
    (as_term,) = dictionary.encode_constants([constant(number)])
    assert as_number == as_term


def test_the_classes_of_an_ontology_are_looked_up_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    engine = EmbeddedEngine()
    a_type = constant(IRI("http://e.org/type"))
    classes = [constant(IRI(f"http://e.org/{at}")) for at in range(200)]
    region = Region(
        shapes=tuple(Pattern("triple", (Column(0), a_type, each)) for each in classes)
    )
    facts = engine.intern("triple", table_of_rows([(1, a_type, classes[3])], 3))
    calls = []
    encode = Dictionary.encode

    def counted(self: Dictionary, column: pa.Array) -> object:
        calls.append(len(column))
        return encode(self, column)

    monkeypatch.setattr(Dictionary, "encode", counted)
    assert engine.settle(facts.within(region)).size() == 1
    assert calls == [201]


@given(st.lists(VALUES, max_size=40), st.lists(VALUES, max_size=40))
def test_law_decoding_undoes_encoding(first: list[Value], second: list[Value]) -> None:
    dictionary = Dictionary()
    for values in (first, second):
        column = table_of_rows([(value,) for value in values], 1).column(0)
        ids = dictionary.encode(column)
        assert constants(dictionary.decode(ids)) == [constant(v) for v in values]
        assert (dictionary.look_up(column) == ids).all()
        assert [dictionary.constant(id_) for id_ in ids.tolist()] == [
            constant(value) for value in values
        ]


def test_equal_constants_have_one_id_and_different_ones_two() -> None:
    dictionary = Dictionary()
    values = ["1", 1, 1.0, Decimal("1.0"), True, IRI("1"), BlankNode("1"), "1", 1]
    ids = dictionary.encode_constants([constant(value) for value in values]).tolist()
    assert ids[0] == ids[-2]
    assert ids[1] == ids[-1]
    assert len(set(ids)) == len(values) - 2


@pytest.mark.parametrize(
    "number", [SMALLEST - 1, SMALLEST, -1, 0, 1, LARGEST, LARGEST + 1, 2**62, -(2**62)]
)
def test_integers_around_the_limits_of_an_id(number: int) -> None:
    dictionary = Dictionary()
    ids = dictionary.encode(pa.array([number]))
    assert ids[0] != UNKNOWN
    assert dictionary.constant(int(ids[0])) == constant(number)
    assert len(dictionary) == (not SMALLEST <= number <= LARGEST)


def test_ids_of_integers_are_in_their_order() -> None:
    numbers = np.array([-(2**30), -5, -1, 0, 1, 7, 2**30 - 2])
    ids = Dictionary().encode_numbers(numbers)
    assert (ids[1:] > ids[:-1]).all()


def test_looking_up_what_was_never_seen_adds_nothing() -> None:
    dictionary = Dictionary()
    dictionary.encode(pa.array(["a"]))
    assert dictionary.look_up(pa.array(["a", "b"])).tolist() == [0, UNKNOWN]
    assert len(dictionary) == 1


def test_the_dictionary_grows_past_its_first_size() -> None:
    dictionary = Dictionary()
    texts = [f"{number:0{number % 50 + 1}}" for number in range(20_000)]
    ids = dictionary.encode(pa.array(texts))
    assert len(dictionary) == len(set(texts))
    assert dictionary.decode(ids).field("text").to_pylist() == texts


def test_slices_of_columns_are_read_from_where_they_start() -> None:
    dictionary = Dictionary()
    column = pa.array(["a", "b", "c", "d"]).slice(2)
    ids = dictionary.encode(column)
    assert dictionary.decode(ids).field("text").to_pylist() == ["c", "d"]


def test_texts_that_differ_in_one_byte_are_told_apart_wherever_it_is() -> None:
    texts = [""]
    for length in range(1, 35):
        plain = "x" * length
        texts.append(plain)
        texts += [plain[:at] + "y" + plain[at + 1 :] for at in range(length)]
    dictionary = Dictionary()
    column = pa.array(["before", *texts, "after"]).slice(1, len(texts))
    ids = dictionary.encode(column)
    assert ids.tolist() == list(range(len(texts)))
    assert dictionary.look_up(column).tolist() == ids.tolist()
    assert dictionary.look_up(pa.array(["xyx", "yyx"])).tolist()[1] == UNKNOWN
    assert dictionary.decode(ids).field("text").to_pylist() == texts
