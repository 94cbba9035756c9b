"""Look-alikes of the data sets that the papers measure, at any size.

None of them is the data set it is named after: those may not be redistributed, and most
are too large for one machine. A look-alike has the kinds of rules to which the papers
attribute their figures (cliques, rules that are hard to evaluate backwards, one large
recursive component, rules that never fire), the same numbers of rules and strata, and
random facts.

`triples_with_rules` generates most of them. Things belong to groups; within a group
they have classes and are linked by properties. Ten classes of a group depend on each
other by recursive rules "anything with a p to a D is a C", and a ring of further rules
makes all groups of a stratum one component. Nonrecursive rules lead from explicit
classes and properties to these classes, and from them up a chain of further ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evermat.bench.generators.closures import CLIQUES, museum_places
from evermat.bench.generators.equalities import university_equalities
from evermat.bench.generators.problem import Problem
from evermat.bench.generators.universities import RULES, add_people, universities
from evermat.columns import TERM
from evermat.lang.lexer import RDF_TYPE
from evermat.values import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

NAMESPACE = "http://lookalike.example/"
_CLASSES = 10
"""Number of classes of each kind in a group, and of its properties."""
_RULES_OF_A_GROUP = 40
_DEPTH = 10
_SPOKES = 5_000
"""Facts around one hub."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The rules of a look-alike.

    Attributes:
        nonrecursive, recursive: the largest numbers of rules of each kind; random rules
        may coincide.
        strata: the number of components of the recursive rules.
        hubs: the share of facts around hubs, as in Example 1 of the paper on DRed^c: a
            rule over them is quadratic when it is evaluated backwards.
    """

    nonrecursive: int
    recursive: int
    strata: int
    hubs: float = 0.0


def triples_with_rules(shape: Shape, facts: int, *, seed: int = 1) -> Problem:
    """Return a problem of that shape with about `facts` triples."""
    random = np.random.default_rng(seed)
    groups = max(1, (shape.nonrecursive + shape.recursive) // _RULES_OF_A_GROUP)
    around = round(facts * shape.hubs) // 2
    typed = (facts - 2 * around) // 3
    linked = facts - 2 * around - typed
    things = max(2 * groups, facts // 4)
    members, ends = (
        random.integers(0, things, typed),
        random.integers(0, things, linked),
    )
    # Linked things are of one group: their numbers differ by a multiple of `groups`.
    others = (ends + groups * random.integers(1, things // groups, linked)) % things
    others += (ends - others) % groups
    stated = "t" if shape.nonrecursive else "c"
    parts = [
        (
            _names("i", members),
            _always(typed, RDF_TYPE.text),
            _names(stated, members % groups * _CLASSES + _one_of(random, typed)),
        ),
        (
            _names("i", ends),
            _names("p", ends % groups * _CLASSES + _one_of(random, linked)),
            _names("i", np.minimum(others, things - 1)),
        ),
    ]
    if around:
        spokes = np.arange(around)
        hubs = spokes % max(1, around // _SPOKES)
        parts += [
            (_names("a", spokes), _always(around, f"{NAMESPACE}at"), _names("b", hubs)),
            (
                _names("a", spokes),
                _always(around, f"{NAMESPACE}at"),
                _names("d", spokes),
            ),
        ]
    return Problem(_rules(random, shape, groups), {"triple": _triples(parts)})


def _rules(random: np.random.Generator, shape: Shape, groups: int) -> str:
    lines = [f"@prefix : <{NAMESPACE}> ."]
    if shape.hubs:
        lines.append("[?y, :together, ?z] :- [?x, :at, ?y], [?x, :at, ?z] .")
    count = shape.nonrecursive - bool(shape.hubs)
    lines += _nonrecursive(random, shape, count, groups)
    lines += _recursive(random, shape, groups)
    return "\n".join(lines) + "\n"


def _nonrecursive(
    random: np.random.Generator, shape: Shape, count: int, groups: int
) -> list[str]:
    lines = []
    for number in range(count):
        group, turn = number % groups, number // groups
        stated, derived, prop = (group * _CLASSES + _one_of(random, 3)).tolist()
        if turn % 2:
            # From the recursive classes up a chain, one class per stratum.
            level = turn // 2 % max(1, shape.strata)
            low = f":up{group}n{level - 1}" if level else f":c{derived}"
            lines.append(f"[?x, a, :up{group}n{level}] :- [?x, a, {low}] .")
            continue
        lines.append(
            (
                f"[?x, a, :c{derived}] :- [?x, a, :t{stated}] .",
                f"[?x, a, :c{derived}] :- [?x, :p{prop}, ?y] .",
                f"[?y, a, :c{derived}] :- [?x, :p{prop}, ?y] .",
                f"[?x, a, :c{derived}] :- [?x, :p{prop}, ?y], [?y, a, :t{stated}] .",
            )[turn // 2 % 4]
        )
    # Some of them may coincide.
    return list(dict.fromkeys(lines))


def _recursive(random: np.random.Generator, shape: Shape, groups: int) -> list[str]:
    lines = []
    strata = min(shape.strata, groups)
    for stratum in range(min(strata, shape.recursive)):
        mine = [group for group in range(groups) if group % strata == stratum]
        ring = [group * _CLASSES + at for group in mine for at in range(_CLASSES)]
        rules = len(range(stratum, shape.recursive, strata))
        ring = ring[: max(1, (rules + 1) // 2)]
        for number in range(rules):
            head = ring[number % len(ring)]
            body = ring[(number + 1) % len(ring)]
            if number >= len(ring):
                first = number % len(ring) // _CLASSES * _CLASSES
                near = ring[first : first + _CLASSES]
                body = near[random.integers(0, len(near))]
            prop = head // _CLASSES * _CLASSES + _one_of(random, 1)[0]
            lines.append(
                f"[?x, a, :c{head}] :- [?x, :p{prop}, ?y], [?y, a, :c{body}] ."
            )
    return list(dict.fromkeys(lines))


def _one_of(random: np.random.Generator, count: int) -> Numbers:
    """Return numbers within a group, small ones more often."""
    return (_CLASSES * random.random(count) ** 2).astype(np.int64)


# ------------------------------------------------------- people, places and categories


def uobm(people_shape: Shape | None, facts: int, *, seed: int = 1) -> Problem:
    """Universities with friends and home towns, and optionally more rules.

    People of one home town form a clique, which is symmetric and transitive. Each
    department is the hub of a rule that relates its members pairwise.
    """
    random = np.random.default_rng(seed)
    problem = universities(1, departments=max(1.0, facts / 8_000), seed=seed)
    data = dict(problem.facts)
    add_people(data, data["email"].column(0).combine_chunks(), random)
    hub = (
        "colleague(?x, ?y) :- works_for(?x, ?z), works_for(?y, ?z) .\n"
        "classmate(?x, ?y) :- takes_course(?x, ?z), takes_course(?y, ?z) .\n"
    )
    rules = problem.rules + RULES + hub
    if people_shape is not None:
        other = triples_with_rules(people_shape, facts // 4, seed=seed)
        rules += other.rules
        data |= other.facts
    return Problem(rules, data)


def claros(places: int, objects: int, rules: int, *, seed: int = 1) -> Problem:
    """Archaeological finds at places that are related in cliques (Claros-LE).

    The rules on finds are as deep as those of the papers, which have eleven strata.
    """
    return museum_places(places, objects, rules, seed=seed, depth=_DEPTH)


# -------------------------------------------------------------------------- equality

_SAME_CODE = "?x ≈ ?y :- code(?x, ?z), code(?y, ?z) .\n"


def with_equal_names(
    problem: Problem, cliques: int, size: int, *, seed: int = 1
) -> Problem:
    """Make some constants of a problem equal, by giving them the same code.

    Args:
        problem: has triples, whose subjects get codes.
        cliques: the number of cliques of equal constants.
        size: the number of constants in each of them.
        seed: of the random choice.
    """
    random = np.random.default_rng(seed)
    texts = pc.struct_field(problem.facts["triple"].column(0).combine_chunks(), 1)
    subjects = pc.unique(texts)
    count = min(cliques * size, len(subjects))
    chosen = random.permutation(len(subjects))[:count]
    codes = pa.table(
        [
            _iris(subjects.take(pa.array(chosen))),
            _iris(_names("code", np.arange(count) // size)),
        ],
        names=["c1", "c2"],
    )
    return Problem(problem.rules + _SAME_CODE, {**problem.facts, "code": codes})


def uobm_with_equality(facts: int, clique: int, *, seed: int = 1) -> Problem:
    """Universities where people have two names, and optionally one large clique.

    The upper bound of UOBM merges thousands of constants into one.
    """
    problem = university_equalities(1, departments=max(1.0, facts / 10_000), seed=seed)
    if not clique:
        return problem
    people = problem.facts["email"].column(0).combine_chunks().slice(0, clique)
    merged = pa.table([people, pa.array(["one"] * len(people))], names=["c1", "c2"])
    return Problem(problem.rules + _SAME_CODE, {**problem.facts, "code": merged})


def related_places(problem: Problem, places: int, clique: int) -> Problem:
    """A problem with cliques of related places, which make Claros-LE hard."""
    members = np.arange(places)
    others = members % clique > 0
    first = members - members % clique
    links = pa.table(
        [_names("place", first[others]), _names("place", members[others])],
        names=["c1", "c2"],
    )
    return Problem(problem.rules + CLIQUES, {**problem.facts, "same": links})


# --------------------------------------------------------------------------- columns


def _names(prefix: str, numbers: Numbers) -> pa.Array:
    texts = pa.array(numbers).cast(pa.string())
    return pc.binary_join_element_wise(NAMESPACE + prefix, texts, "")


def _always(count: int, iri: str) -> pa.Array:
    return pa.repeat(iri, count)


def _triples(parts: list[tuple[pa.Array, pa.Array, pa.Array]]) -> pa.Table:
    columns = ["subject", "predicate", "object"]
    table = pa.concat_tables([pa.table(list(part), names=columns) for part in parts])
    table = table.group_by(columns, use_threads=False).aggregate([])
    return pa.table(
        {name: _iris(table.column(name).combine_chunks()) for name in columns}
    )


def _iris(texts: pa.Array) -> pa.Array:
    kinds = pa.array(np.full(len(texts), int(Kind.IRI), np.uint8))
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))
