"""Problems with equality: people with two names, large cliques, many small ones.

- *Universities with equality*, a look-alike of UOBM: the data of `universities` and of
  `university_people`, in which some people and universities go by a second name.
  Equality follows from an inverse-functional property (people with the same address
  are the same) and from a functional one (a person has one first degree).
- *One clique* of thousands of names beside ordinary facts.
- *Many cliques* of two to five names each, and facts about all of them.
- *An ontology with equality*, a look-alike of OpenCyc: very many rules about classes,
  most of which never fire, and things with several names.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evermat.bench.generators.problem import Problem
from evermat.bench.generators.universities import RULES, add_people, universities
from evermat.columns import TERM
from evermat.values import Kind

Ids = NDArray[np.int64]

_SECOND = "~2"

_UNIVERSITY_RULES = """
?x ≈ ?y :- email(?x, ?address), email(?y, ?address) .
?x ≈ ?y :- bachelor_from(?person, ?x), bachelor_from(?person, ?y) .
"""

_NAMED = (
    *(("telephone", 0), ("takes_course", 0), ("author", 1)),
    *(("friend_of", 0), ("same_home_town", 1), ("like", 0)),
)
"""Positions at which people appear by either of their names."""


def university_equalities(
    count: int, *, departments: float = 20, seed: int = 1
) -> Problem:
    """Universities where one person in twenty has a second name."""
    random = np.random.default_rng(seed)
    problem = universities(count, departments=departments, seed=seed)
    facts = dict(problem.facts)
    people = facts["email"].column(0)
    add_people(facts, people.combine_chunks(), random)
    chosen = _sample(random, len(people), 0.05)
    twice = pc.take(people, pa.array(chosen))
    facts["email"] = _more(
        facts["email"],
        [_second(twice), facts["email"].column(1).take(pa.array(chosen))],
    )
    for name, position in _NAMED:
        facts[name] = _renamed(random, facts[name], position, twice)
    degrees = facts["bachelor_from"]
    some = _sample(random, degrees.num_rows, 0.02)
    taken = degrees.take(pa.array(some))
    facts["bachelor_from"] = _more(degrees, [taken.column(0), _second(taken.column(1))])
    return Problem(problem.rules + RULES + _UNIVERSITY_RULES, facts)


def _sample(random: np.random.Generator, size: int, share: float) -> Ids:
    return np.flatnonzero(random.random(size) < share)


def _second(names: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(names, _SECOND, "")


def _more(table: pa.Table, columns: list[pa.ChunkedArray]) -> pa.Table:
    return pa.concat_tables([table, pa.table(columns, schema=table.schema)])


def _renamed(
    random: np.random.Generator,
    table: pa.Table,
    position: int,
    names: pa.ChunkedArray,
) -> pa.Table:
    """A table in which half of the facts of some people use their second name."""
    column = table.column(position)
    is_named = pc.is_in(column, value_set=names.combine_chunks())
    coin = pa.array(random.integers(0, 2, table.num_rows).astype(np.bool_))
    changed = pc.if_else(
        pc.and_(is_named.combine_chunks(), coin),
        _second(column).combine_chunks(),
        column.combine_chunks(),
    )
    return table.set_column(position, table.schema.names[position], changed)


# ----------------------------------------------------------------------- cliques


def _names(prefix: str, numbers: Ids) -> pa.Array:
    texts = pa.array(numbers).cast(pa.string())
    return pc.binary_join_element_wise(prefix, texts, "")


def one_clique(size: int, ordinary: int, *, seed: int = 1) -> Problem:
    """A clique of names, facts about them, and ordinary facts about others."""
    random = np.random.default_rng(seed)
    members = _names("n", np.arange(size))
    first = pc.take(members, pa.array(np.zeros(size - 1, np.int64)))
    things = max(2, ordinary // 4)
    left = _names("x", random.integers(0, things, ordinary))
    right = _names("x", random.integers(0, things, ordinary))
    about = 2 * size
    left = pa.concat_arrays([left, _names("x", random.integers(0, things, about))])
    right = pa.concat_arrays([right, _names("n", random.integers(0, size, about))])
    rules = "linked(?y, ?x) :- knows(?x, ?y) .\n"
    return Problem(
        rules,
        {
            "knows": pa.table([left, right], names=["c1", "c2"]),
            "same_as": pa.table([first, members.slice(1)], names=["c1", "c2"]),
        },
    )


def small_cliques(count: int, facts: int, *, seed: int = 1) -> Problem:
    """Cliques of two to five names, and facts about any of the names."""
    random = np.random.default_rng(seed)
    sizes = random.integers(2, 6, count)
    starts = np.cumsum(sizes) - sizes
    total = int(sizes.sum())
    heads = np.repeat(starts, sizes)
    members = np.arange(total)
    others = heads != members
    return Problem(
        "",
        {
            "knows": pa.table(
                [
                    _names("n", random.integers(0, total, facts)),
                    _names("n", random.integers(0, total, facts)),
                ],
                names=["c1", "c2"],
            ),
            "same_as": pa.table(
                [_names("n", heads[others]), _names("n", members[others])],
                names=["c1", "c2"],
            ),
        },
    )


# ---------------------------------------------------------------------- ontology

_CYC = "http://cyc.org/"
_FIELD = 100
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"


def ontology_equalities(rules: int, things: int, *, seed: int = 1) -> Problem:
    """Many rules about classes and properties, most of which never fire.

    A tenth of the rules are subclass axioms between classes that are used; one in two
    hundred gives a type to the values of a property without facts; the others speak
    of classes without members. One thing in ten has other names.

    Classes come in fields of a hundred, so that what follows for a thing does not grow
    with the number of all classes: about fifteen facts for each that is given.
    """
    random = np.random.default_rng(seed)
    used = max(10, rules // 100)
    lines = [f"@prefix c: <{_CYC}> ."]
    for _ in range(rules // 10):
        first = _FIELD * int(random.integers(0, max(1, used // _FIELD)))
        low = int(random.integers(1, min(used, _FIELD)))
        high = int(random.integers(0, low))
        lines.append(f"[?x, a, c:K{first + high}] :- [?x, a, c:K{first + low}] .")
    lines += [f"[?y, a, ?x] :- [?x, c:idle{n}, ?y] ." for n in range(rules // 200)]
    idle = rules - len(lines) - 4
    lines += [f"[?x, a, c:I{n}] :- [?x, a, c:J{n}] ." for n in range(idle)]
    lines += [
        "[?x, owl:sameAs, ?y] :- [?x, c:code, ?z], [?y, c:code, ?z] .",
        "[?x, c:near, ?y] :- [?y, c:near, ?x] .",
        "[?x, c:related, ?y] :- [?x, c:near, ?y] .",
    ]
    named = _names(_CYC + "t", np.arange(things))
    aliases = _sample(random, things, 0.1)
    second = _names(_CYC + "s", aliases)
    everything = pa.concat_arrays([named, second])
    codes = _names(_CYC + "code", np.concatenate([np.arange(things), aliases]))
    kinds = _names(_CYC + "K", random.integers(0, used, things))
    near = [
        everything.take(pa.array(random.integers(0, len(everything), things)))
        for _ in range(2)
    ]
    parts = [
        (named, _TYPE, kinds),
        (everything, _CYC + "code", codes),
        (near[0], _CYC + "near", near[1]),
    ]
    return Problem("\n".join(lines), {"triple": _triples(parts)})


def _triples(parts: list[tuple[pa.Array, str, pa.Array]]) -> pa.Table:
    tables = [
        pa.table(
            [_iris(subject), _iris(pa.array([name] * len(subject))), _iris(value)],
            names=["subject", "predicate", "object"],
        )
        for subject, name, value in parts
    ]
    return pa.concat_tables(tables)


def _iris(texts: pa.Array) -> pa.Array:
    kinds = pa.array(np.full(len(texts), int(Kind.IRI), np.uint8))
    return pa.StructArray.from_arrays([kinds, texts], fields=list(TERM))
