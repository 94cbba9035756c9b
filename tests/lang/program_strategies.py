"""Random programs of any form, to print and read back; they need not be valid."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from evermat.lang.syntax import (
    AGGREGATE_FUNCTIONS,
    Aggregation,
    Atom,
    BodyElement,
    Call,
    Condition,
    DataSink,
    DataSource,
    Declaration,
    Expression,
    Negation,
    Program,
    Rule,
    Term,
    Variable,
)
from evermat.values import (
    IRI,
    XSD,
    BlankNode,
    LangString,
    TypedLiteral,
    constant,
)

EX = "http://example.org/"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
names = st.sampled_from(["p", "q", "Edge", "wörter", "a", "min", "length", "x1"])
odd_names = st.sampled_from(
    [f"{EX}p", f"{EX}a.b", f"{EX}odd name", "not", "contains", "true", "_", "a-b", ""]
)
predicates = names | odd_names | texts.filter(lambda text: not text.startswith("~"))
iris = st.builds(IRI, st.sampled_from([EX + "a", EX + "b:-c", EX, "urn:x", "rel"]))
iris |= st.builds(lambda text: IRI(EX + text), texts)
values = st.one_of(
    texts,
    st.integers(),
    st.booleans(),
    st.floats(),
    st.decimals(allow_nan=False, allow_infinity=False, places=3).map(Decimal),
    iris,
    st.builds(BlankNode, st.sampled_from(["b", "b1", "a.b", "9-x"])),
    st.builds(TypedLiteral, texts, st.sampled_from([XSD + "date", XSD + "integer"])),
    st.builds(LangString, texts, st.sampled_from(["en", "de-at"])),
)
terms = st.builds(lambda value: Term(constant(value)), values)
variables = st.builds(Variable, st.sampled_from(["x", "y", "_", "zoë", "_1"]))
leaves = terms | variables


def _calls(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    operators = st.sampled_from(["+", "-", "*", "/", "%"])
    comparisons = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
    return st.one_of(
        st.builds(lambda sign, a, b: Call(sign, (a, b)), operators, inner, inner),
        st.builds(lambda sign, a, b: Call(sign, (a, b)), comparisons, inner, inner),
        st.builds(lambda a: Call("-", (a,)), inner),
        st.builds(
            lambda name, arguments: Call(name, tuple(arguments)),
            st.sampled_from(["min", "length", "contains", "nonsense"]),
            st.lists(inner, max_size=3),
        ),
    )


expressions = st.recursive(leaves, _calls, max_leaves=6)
conditions = expressions.filter(
    lambda each: (
        isinstance(each, Call)
        and each.function in {"=", "!=", "<", "<=", ">", ">=", "contains"}
    )
).map(
    lambda each: Condition(each) if isinstance(each, Call) else Condition(Call("", ()))
)


def atoms(arguments: st.SearchStrategy[Expression]) -> st.SearchStrategy[Atom]:
    plain = st.builds(
        lambda name, parts: Atom(name, tuple(parts)),
        predicates,
        st.lists(arguments, max_size=3),
    )
    triples = st.builds(
        lambda parts: Atom("triple", parts), st.tuples(arguments, arguments, arguments)
    )
    return plain | triples


def _aggregations(
    inner: st.SearchStrategy[BodyElement],
) -> st.SearchStrategy[Aggregation]:
    return st.builds(
        Aggregation,
        variables.filter(lambda each: each.name != "_"),
        st.sampled_from(AGGREGATE_FUNCTIONS),
        st.lists(expressions, min_size=1, max_size=2).map(tuple),
        st.lists(inner, min_size=1, max_size=2).map(tuple),
    )


plain_elements: st.SearchStrategy[BodyElement] = st.one_of(
    atoms(expressions), st.builds(Negation, atoms(expressions)), conditions
)
elements = st.one_of(
    plain_elements,
    plain_elements,
    plain_elements,
    _aggregations(st.one_of(plain_elements, _aggregations(plain_elements))),
)
rules = st.builds(
    Rule,
    st.lists(atoms(expressions), min_size=1, max_size=2).map(tuple),
    st.lists(elements, min_size=1, max_size=4).map(tuple),
)
column_types = st.sampled_from(["any", "string", "integer", "iri"])
declarations = st.lists(column_types, max_size=3).flatmap(
    lambda types: st.builds(
        Declaration,
        predicates,
        st.just(len(types)),
        st.just(tuple(types)),
        st.just(()) | st.just(tuple("abc"[: len(types)])),
    )
)
options = st.lists(
    st.tuples(st.sampled_from(["delimiter", "header"]), texts), max_size=2
).map(tuple)
programs = st.builds(
    Program,
    rules=st.lists(rules, max_size=4).map(tuple),
    facts=st.lists(atoms(terms), max_size=3).map(tuple),
    prefixes=st.sampled_from([(), (("ex", EX), ("", "urn:")), (("x", EX + "a"),)]),
    base=st.none() | st.just(EX),
    declarations=st.lists(declarations, max_size=2).map(tuple),
    sources=st.lists(st.builds(DataSource, predicates, texts, options), max_size=2).map(
        tuple
    ),
    sinks=st.lists(st.builds(DataSink, predicates, texts, options), max_size=1).map(
        tuple
    ),
)
