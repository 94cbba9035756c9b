"""Problems in which closures do most of the work.

The data of the paper on modules may not be redistributed, so these are look-alikes:
they have the same kinds of rules and the same shape of data, at any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from evermat.bench.generators.graphs import NONLINEAR_CLOSURE
from evermat.bench.generators.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_CHAIN = 500
"""Categories in a long chain or cycle; see `categories`."""
_LONG_SHARE = 1 / 100
"""Share of categories in long chains and cycles."""

CLIQUES = """\
same(?x, ?z) :- same(?x, ?y), same(?y, ?z) .
same(?y, ?x) :- same(?x, ?y) .
"""

CATEGORIES = """\
broader_transitive(?x, ?y) :- broader(?x, ?y) .
broader_transitive(?x, ?z) :- broader_transitive(?x, ?y), broader_transitive(?y, ?z) .
narrower(?y, ?x) :- broader(?x, ?y) .
narrower_transitive(?x, ?y) :- narrower(?x, ?y) .
narrower_transitive(?x, ?z) :-
    narrower_transitive(?x, ?y), narrower_transitive(?y, ?z) .
related(?y, ?x) :- related(?x, ?y) .
exact_match(?y, ?x) :- exact_match(?x, ?y) .
exact_match(?x, ?z) :- exact_match(?x, ?y), exact_match(?y, ?z) .
close_match(?x, ?y) :- exact_match(?x, ?y) .
close_match(?y, ?x) :- close_match(?x, ?y) .
mapping_relation(?x, ?y) :- close_match(?x, ?y) .
semantic_relation(?x, ?y) :- broader_transitive(?x, ?y) .
semantic_relation(?x, ?y) :- related(?x, ?y) .
concept(?x) :- semantic_relation(?x, ?y) .
concept(?y) :- semantic_relation(?x, ?y) .
in_scheme(?x, ?s) :- top_concept_of(?x, ?s) .
"""

ORGANISATIONS = """\
part_of(?x, ?z) :- part_of(?x, ?y), part_of(?y, ?z) .
same_town(?x, ?z) :- same_town(?x, ?y), same_town(?y, ?z) .
same_town(?y, ?x) :- same_town(?x, ?y) .
friend(?x, ?z) :- friend(?x, ?y), friend(?y, ?z) .
friend(?y, ?x) :- friend(?x, ?y) .
member(?x, ?y) :- works_for(?x, ?y) .
member(?x, ?z) :- member(?x, ?y), part_of(?y, ?z) .
neighbour(?x) :- same_town(?x, ?y), professor(?y) .
colleague(?x, ?y) :- works_for(?x, ?z), works_for(?y, ?z), professor(?x) .
"""


def cliques(count: int, nodes: int, edges: int, seed: int = 1) -> Problem:
    """Connected components, each spanned by few of its many facts."""
    random = np.random.default_rng(seed)
    parts = [_component(random, n * nodes, nodes, edges) for n in range(count)]
    return Problem(CLIQUES, {"same": _table(np.concatenate(parts, axis=1))})


def short_paths(count: int) -> Problem:
    """Paths of four nodes each: many small components."""
    nodes = np.arange(4 * count).reshape(-1, 4)
    edges = np.stack([nodes[:, :3].ravel(), nodes[:, 1:].ravel()])
    return Problem(NONLINEAR_CLOSURE, {"edge": _table(edges)})


def _component(
    random: np.random.Generator, first: int, nodes: int, edges: int
) -> Numbers:
    """Return a random tree and some additional edges."""
    later = np.arange(1, nodes)
    tree = np.stack([later, (random.random(nodes - 1) * later).astype(np.int64)])
    others = random.integers(0, nodes, (2, max(0, edges - nodes + 1)))
    return first + np.concatenate([tree, others], axis=1)


def categories(concepts: int, seed: int = 1) -> Problem:
    """A graph of categories with cycles, and the rules of SKOS on it.

    Most categories are in a flat hierarchy, few in long chains, and every other chain
    is closed to a cycle. Their length and number follow from the paper's figures for
    its sample of DBpedia: the materialisation is 19.4 times as large as the data, and
    took 3,623 s without modules. On the same server the 8.9 thousand million instances
    of DAG-R took 3,239 s, so there were about 103 instances for each of the 97 million
    facts.
    """
    random = np.random.default_rng(seed)
    long = round(concepts * _LONG_SHARE)
    later = np.arange(1, concepts - long)
    second = later[random.random(later.size) < 0.25]  # noqa: PLR2004
    broader = np.concatenate(
        [
            np.stack([later, later // 40]),
            np.stack([second, (second + 1) // 41]),
            *_chains(concepts - long, long),
        ],
        axis=1,
    )
    pairs = random.integers(0, concepts, (2, concepts // 10))
    groups = random.integers(0, concepts, (2, concepts // 20))
    return Problem(
        CATEGORIES,
        {
            "broader": _table(_distinct(broader)),
            "related": _table(_distinct(pairs)),
            "exact_match": _table(_distinct(groups)),
            "top_concept_of": _table(np.array([[0], [concepts]])),
        },
    )


def _chains(first: int, nodes: int) -> list[Numbers]:
    """Long chains of categories; every other one is closed to a cycle."""
    parts = []
    for number, start in enumerate(range(0, nodes, _CHAIN)):
        length = min(_CHAIN, nodes - start)
        later = np.arange(1, length)
        parts.append(first + start + np.stack([later, later - 1]))
        if number % 2 == 0:
            last = first + start + length - 1
            parts.append(np.array([[first + start], [last]]))
    return parts


def museum_places(
    places: int, objects: int, other_rules: int, seed: int = 1, *, depth: int = 0
) -> Problem:
    """Cliques of related places among many rules on other things (like Claros).

    Args:
        places: the number of places.
        objects: the number of objects found at one of them.
        other_rules: the number of rules about kinds of objects.
        seed: of the random choice.
        depth: the length of chains of dependent rules; 0 for a single chain.
    """
    random = np.random.default_rng(seed)
    clique = 200
    count = max(1, places // clique)
    size = min(clique, places)
    related = np.concatenate(
        [_component(random, n * size, size, 2 * size) for n in range(count)], axis=1
    )
    rules = [
        "related(?x, ?z) :- related(?x, ?y), related(?y, ?z) .",
        "related(?y, ?x) :- related(?x, ?y) .",
        "within(?x, ?z) :- within(?x, ?y), within(?y, ?z) .",
        "seen_in(?x, ?q) :- found_at(?x, ?p), capital(?p), related(?p, ?q) .",
        *(
            f"kind{n + 1}(?x, ?y) :- {_lower_kind(n, depth)}(?x, ?y) ."
            if n % 10
            else f"kind{n + 1}(?x, ?y) :- {_lower_kind(n, depth)}(?x, ?z), "
            "within(?z, ?y) ."
            for n in range(other_rules)
        ),
    ]
    things = np.arange(objects) + places
    later = np.arange(1, places)
    lowest = ["kind0", f"kind{other_rules // 2}"]
    if depth:
        lowest = [_lower_kind(n, depth) for n in range(0, other_rules, depth)]
    parts = np.array_split(things, len(lowest)) if depth else [things] * len(lowest)
    return Problem(
        "\n".join(rules),
        {
            "related": _table(related),
            "within": _table(np.stack([later, later // 8])),
            "capital": pa.table({"c1": np.arange(0, places, max(1, places // 10))}),
            "found_at": _table(np.stack([things, random.integers(0, places, objects)])),
            **{
                name: _table(np.stack([part, random.integers(0, places, len(part))]))
                for name, part in zip(lowest, parts, strict=True)
            },
        },
    )


def _lower_kind(number: int, depth: int) -> str:
    """Return the predicate that derives a kind: the lower kind, or a stated one."""
    is_lowest = depth and number % depth == 0
    return f"stated{number}" if is_lowest else f"kind{number}"


def organisations(people: int, seed: int = 1) -> Problem:
    """One transitive and two symmetric–transitive relations (like LUBM-LE)."""
    random = np.random.default_rng(seed)
    units = max(4, people // 20)
    later = np.arange(1, units)
    town = max(2, people // 150)
    members = np.arange(people)
    in_town = np.stack([members[town:], members[:-town]])
    circle = max(2, people // 60)
    friends = np.stack([members[circle:], members[:-circle]])
    keep = random.random(friends.shape[1]) < 0.9  # noqa: PLR2004  circles fall apart
    works = np.stack([people + random.integers(0, units, people), members])[::-1]
    return Problem(
        ORGANISATIONS,
        {
            "part_of": _table(np.stack([people + later, people + later // 4])),
            "same_town": _table(in_town),
            "friend": _table(friends[:, keep]),
            "works_for": _table(works),
            "professor": pa.table({"c1": members[:: max(1, people // 500)]}),
        },
    )


def _distinct(pairs: Numbers) -> Numbers:
    return np.unique(pairs, axis=1)


def _table(pairs: Numbers) -> pa.Table:
    return pa.table({"c1": pairs[0], "c2": pairs[1]})
