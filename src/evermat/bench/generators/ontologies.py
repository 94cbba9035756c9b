"""Ontology axioms written as rules with constants, over RDF triples.

An axiom of an ontology is a rule: `:c7 rdfs:subClassOf :c1` is
`[?x, a, :c1] :- [?x, a, :c7]`. A problem has k such rules, a quarter each for
subclasses, subproperties, domains and ranges, over the same triples whatever k is.

Classes and properties are numbered by how common they are: the i-th is used with a
frequency proportional to `i ** -1.5`, so that a few names make up most of the data and
most axioms touch few facts, as in real ontologies. The parent of the i-th class or
property is the `i // 4`-th, and the rules come in the order of these numbers. The first
20 rules therefore already concern more than half of the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.bench.generators.graphs import distinct
from evermat.bench.generators.problem import Problem
from evermat.values import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray


NAMESPACE = "http://bench.example/"
RDF_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

NAMES = 5_000
"""Number of classes, and of properties."""

_FAN_OUT = 4
_SKEW = 1.5
_TYPED_SHARE = 0.3


def ontology_rules(axioms: int, triples: int, seed: int = 1) -> Problem:
    """`axioms` axioms as rules, over `triples` triples."""
    return Problem(_rules(axioms), {"triple": _triples(triples, seed)})


def _rules(axioms: int) -> str:
    if axioms > 4 * NAMES:
        message = f"there are {4 * NAMES} axioms, not {axioms}"
        raise ValueError(message)
    lines = [f"@prefix : <{NAMESPACE}> ."]
    for number in range(axioms):
        name = number // 4 + 1
        parent = name // _FAN_OUT
        lines.append(
            (
                f"[?x, a, :c{parent}] :- [?x, a, :c{name}] .",
                f"[?x, :p{parent}, ?y] :- [?x, :p{name}, ?y] .",
                f"[?x, a, :c{name}] :- [?x, :p{name}, ?y] .",
                f"[?y, a, :c{name}] :- [?x, :p{name}, ?y] .",
            )[number % 4]
        )
    return "\n".join(lines) + "\n"


def _triples(wanted: int, seed: int) -> pa.Table:
    """Return triples about `wanted / 5` individuals, each triple once."""
    random = np.random.default_rng(seed)
    individuals = max(2, wanted // 5)
    typed = int(wanted * _TYPED_SHARE)
    members, classes, _ = _distinct_triples(random, typed, individuals, 1)
    links = _distinct_triples(random, wanted - typed, individuals, individuals)
    return pa.concat_tables([_table(members, None, classes), _table(*links)])


def _common_names(random: np.random.Generator, count: int) -> NDArray[np.int64]:
    """Numbers from 1 to NAMES, small ones most often."""
    weights = np.arange(1, NAMES + 1) ** -_SKEW
    edges = np.cumsum(weights / weights.sum())
    found = np.searchsorted(edges, random.random(count))
    return np.minimum(found, NAMES - 1) + 1


def _distinct_triples(
    random: np.random.Generator, wanted: int, subjects: int, objects: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Distinct subjects, names and objects; with one object, subjects and names."""
    keys: NDArray[np.int64] = np.empty(0, dtype=np.int64)
    while len(keys) < wanted:
        draws = 2 * (wanted - len(keys)) + 16
        fresh = random.integers(0, subjects, size=draws) * (NAMES + 1)
        fresh = (fresh + _common_names(random, draws)) * objects
        fresh += random.integers(0, objects, size=draws)
        keys = distinct(np.concatenate([keys, fresh]))
    kept = np.sort(random.choice(keys, size=wanted, replace=False))
    pairs = kept // objects
    return pairs // (NAMES + 1), pairs % (NAMES + 1), kept % objects


def _table(
    subjects: NDArray[np.int64],
    properties: NDArray[np.int64] | None,
    objects: NDArray[np.int64],
) -> pa.Table:
    """Triples of IRIs; without properties, `rdf:type` triples with classes."""
    if properties is None:
        predicates = pa.repeat(RDF_TYPE, len(subjects))
        ends = _iris("c", objects)
    else:
        predicates = _iris("p", properties)
        ends = _iris("i", objects)
    columns = (_iris("i", subjects), predicates, ends)
    names = ("subject", "predicate", "object")
    return pa.table(dict(zip(names, map(_as_terms, columns), strict=True)))


def _iris(letter: str, numbers: NDArray[np.int64]) -> pa.Array:
    texts = pa.array(numbers).cast(pa.string())
    return pc.binary_join_element_wise(NAMESPACE + letter, texts, "")


def _as_terms(texts: pa.Array) -> pa.StructArray:
    kinds = pa.repeat(pa.scalar(int(Kind.IRI), pa.uint8()), len(texts))
    return pa.StructArray.from_arrays([kinds, texts], names=["kind", "text"])


# ----------------------------------------------------------------------- terminologies

# A synthetic terminology, classified by the completion rules of the logic EL.
#
# Concepts form a hierarchy in which each has one or two parents a little above it, as
# in medical terminologies. Some are defined: by a conjunction of two others (`conj`),
# or as things with a role to something (`some`). Concepts have roles to others (`has`),
# roles have parents (`subrole`) and chains (`chain`).
#
# Six rules classify: `sub` contains subclass pairs, `role` triples of a concept, a role
# and another concept. The first rule makes `sub` transitive; three of the others derive
# pairs and triples from the closure, so that it grows in every round.


RULES = """
    sub(?x, ?y) :- stated(?x, ?y) .
    sub(?x, ?z) :- sub(?x, ?y), sub(?y, ?z) .
    sub(?x, ?c) :- sub(?x, ?a), conj(?a, ?b, ?c), sub(?x, ?b) .
    role(?x, ?r, ?y) :- sub(?x, ?z), has(?z, ?r, ?y) .
    sub(?x, ?z) :- role(?x, ?r, ?y), some(?r, ?w, ?z), sub(?y, ?w) .
    role(?x, ?s, ?y) :- role(?x, ?r, ?y), subrole(?r, ?s) .
    role(?x, ?t, ?z) :- role(?x, ?r, ?y), chain(?r, ?s, ?t), role(?y, ?s, ?z) .
"""

_ROLES = 20
_TWO_PARENTS = 0.4
_NEARNESS = 4
"""Parents have about half the number of a concept: paths are logarithmic in length."""

_TOP = 20
"""One concept in this many is at the top, where definitions by roles are."""


def terminology(concepts: int, seed: int = 1) -> Problem:
    """A terminology of n concepts; parents have smaller numbers."""
    random = np.random.default_rng(seed)
    # Parents have smaller numbers, so that there are no cycles.
    every = np.arange(1, concepts)
    first = _above(random, every)
    second = every[random.random(every.size) < _TWO_PARENTS]
    stated = _pairs([every, second], [first, _above(random, second)])
    return Problem(
        RULES,
        {
            "stated": stated,
            "conj": _defined_by_two(random, concepts),
            "has": _with_roles(random, concepts),
            "some": _defined_by_roles(random, concepts),
            "subrole": _pairs([np.arange(1, _ROLES)], [np.arange(1, _ROLES) // 3]),
            "chain": _column_table(
                np.array([1, 4]), np.array([2, 4]), np.array([3, 4])
            ),
        },
    )


def _above(
    random: np.random.Generator, concepts: NDArray[np.int64]
) -> NDArray[np.int64]:
    share = random.beta(_NEARNESS, _NEARNESS, concepts.size)
    above: NDArray[np.int64] = (concepts * share).astype(np.int64)
    return np.minimum(above, concepts - 1)


def _defined_by_two(random: np.random.Generator, concepts: int) -> pa.Table:
    """Return definitions: below two concepts means below a third one."""
    size = concepts // _TOP
    one = random.integers(1, concepts, size)
    other = _above(random, one)
    return _column_table(one, other, _above(random, np.minimum(one, other)))


def _with_roles(random: np.random.Generator, concepts: int) -> pa.Table:
    size = concepts // 3
    return _column_table(
        random.integers(concepts // _TOP, concepts, size),
        random.integers(0, _ROLES, size),
        random.integers(0, concepts, size),
    )


def _defined_by_roles(random: np.random.Generator, concepts: int) -> pa.Table:
    """Return definitions: things with a role to something are below a top concept."""
    size = concepts // _TOP
    return _column_table(
        random.integers(0, _ROLES, size),
        random.integers(0, concepts, size),
        random.integers(0, max(1, concepts // _TOP), size),
    )


def _pairs(
    sources: list[NDArray[np.int64]], targets: list[NDArray[np.int64]]
) -> pa.Table:
    return _column_table(np.concatenate(sources), np.concatenate(targets))


def _column_table(*columns: NDArray[np.int64]) -> pa.Table:
    """Return the distinct rows of some columns."""
    rows = np.unique(np.stack(columns), axis=1)
    return pa.table({str(at): column for at, column in enumerate(rows)})
