"""Programs with equality that are hard to maintain, with random facts and updates.

`equality_scenarios` draws programs at random, and few of them are hard. Here they are
chosen by hand for what they make B/F^≈ do, and only facts and updates are random.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from equality_scenarios import ARITIES, NAMES, NUMBERS, PROPERTIES, Scenario
from evermat.lang.parser import parse_rules
from evermat.lang.syntax import SAME_AS, TRIPLE
from strategies import Update

if TYPE_CHECKING:
    from evermat.lang.syntax import Rule
    from oracle import Fact

TEXTS = {
    "proofs that are found before anybody asks": """
        q(?x) :- p(?x) .
        q(?x) :- s(?x, ?x) .
        p(?x) :- r(?x, ?y) .
        ?x ≈ ?y :- q(?x), t(?x, ?y) .
    """,
    "facts that meet when names are merged": """
        q(?y) :- p(?x), r(?x, ?y) .
        q(?y) :- s(?y, ?y) .
        ?x ≈ ?y :- q(?x), t(?x, ?y) .
    """,
    "facts beside a clique that falls apart": """
        q(?z) :- t(?x, ?y), s(?y, ?z) .
        ?x ≈ ?y :- q(?x), r(?x, ?y) .
    """,
    "many ways to be equal": """
        ?x ≈ ?y :- r(?x, ?z), r(?y, ?z) .
        ?x ≈ ?y :- s(?z, ?x), s(?z, ?y), p(?z) .
        p(?x) :- q(?x) .
        p(?x) :- r(?x, ?x) .
    """,
    "equality that depends on itself": """
        r(?x, ?y) :- s(?x, ?y), p(?y) .
        ?x ≈ ?y :- r(?x, ?z), r(?y, ?z) .
        ?x ≈ ?y :- r(?z, ?x), r(?z, ?y) .
        p(?x) :- r(?x, ?x) .
    """,
    "a closure beside another rule": """
        t(?x, ?z) :- t(?x, ?y), t(?y, ?z) .
        t(?y, ?x) :- t(?x, ?y) .
        t(?x, ?z) :- t(?x, ?y), r(?y, ?z) .
        ?x ≈ ?y :- s(?x, ?y) .
        u(?x) :- p(?x), not t(?x, ?x) .
    """,
    "names in rules": """
        @prefix : <http://e.org/> .
        ?x ≈ :a :- p(?x), q(?x) .
        q(:b) :- r(:a, :b) .
        p(?x) :- s(?x, :c) .
        q(?x) :- s(:d, ?x), t(:a, ?x) .
    """,
    "values": """
        ?x ≈ ?y :- n(?x, ?z), n(?y, ?z), ?z > 1 .
        p(?x) :- n(?x, ?y), ?y < 3 .
        n(?x, ?y) :- s(?x, ?z), n(?z, ?y), p(?x) .
        u(?x) :- q(?x), not p(?x) .
    """,
    "properties that turn out to be the same": """
        @prefix : <http://e.org/> .
        :p ≈ :q :- q(:a) .
        ?x ≈ ?y :- [?x, :p, ?z], [?y, :p, ?z] .
        [?y, :q, ?x] :- [?x, :p, ?y], p(?x) .
        q(?x) :- [?x, :q, ?x] .
        u(?x) :- p(?x), not [?x, :q, ?x] .
    """,
    "negation and a closure above equality": """
        ?x ≈ ?y :- r(?x, ?z), r(?y, ?z) .
        t(?x, ?z) :- t(?x, ?y), t(?y, ?z) .
        v(?x, ?y) :- s(?x, ?y), not t(?x, ?y) .
        u(?x) :- p(?x), not v(?x, ?x) .
        v(?x, ?z) :- v(?x, ?y), s(?y, ?z) .
        u(?x) :- n(?x, ?y), ?y >= 2, not same_as(?x, ?y) .
    """,
}
RULE_CHANGES = 0.2
"""How often an update takes a rule away; the next one brings it back."""

PROGRAMS = [parse_rules(text) for text in TEXTS.values()]


_A, _B, _C, _D = NAMES[:4]
BY_HAND = (
    # A rule speaks of b; only after a ≈ b is proved, it matches what is proved of a.
    Scenario(
        parse_rules("""
            @prefix : <http://e.org/> .
            q(?y) :- p(:b), s(?y, ?y) .
            q(?y) :- t(?y, ?y) .
            ?x ≈ ?y :- q(?x), r(?x, ?y) .
        """),
        frozenset(
            {
                (SAME_AS, (_A, _B)),
                ("p", (_A,)),
                ("s", (_C, _C)),
                ("t", (_C, _C)),
                ("r", (_C, _D)),
            }
        ),
        (Update(delete=frozenset({("t", (_C, _C))})),),
    ),
    # t(a, c) stood for t(b, c), too, which is gone; half of it still proves q(d).
    Scenario(
        parse_rules("""
            q(?z) :- t(?x, ?y), s(?y, ?z) .
            ?x ≈ ?y :- q(?x), r(?x, ?y) .
        """),
        frozenset({(SAME_AS, (_A, _B)), ("t", (_A, _C)), ("s", (_C, _D))}),
        (Update(delete=frozenset({(SAME_AS, (_A, _B))})),),
    ),
    # r(a, c) goes together with r(b, c), which it stood for: that is two facts.
    Scenario(
        parse_rules("?x ≈ ?y :- r(?x, ?z), r(?y, ?z) ."),
        frozenset({("r", (_A, _C)), ("r", (_B, _C)), ("r", (_B, _D)), ("p", (_A,))}),
        (
            Update(delete=frozenset({("r", (_A, _C)), ("r", (_B, _C))})),
            Update(insert=frozenset({("r", (_A, _C)), ("r", (_A, _D))})),
            Update(delete=frozenset({("r", (_A, _D))})),
        ),
    ),
    # u(a) is withdrawn while it begins to stand for u(b), which is given: it stays.
    Scenario(
        parse_rules("v(?x, ?x) :- u(?x) ."),
        frozenset({("u", (_A,)), ("t", (_C, _C))}),
        (
            Update(
                delete=frozenset({("u", (_A,))}),
                insert=frozenset({("u", (_B,)), (SAME_AS, (_A, _B))}),
            ),
            Update(
                delete=frozenset({("u", (_B,)), (SAME_AS, (_A, _B))}),
                insert=frozenset({("u", (_A,))}),
            ),
        ),
    ),
)
"""What random facts rarely lead to."""


def scenario_of(number: int) -> Scenario:
    """The scenario of a number."""
    random = Random(number)  # noqa: S311  tests are to be repeatable
    rules = PROGRAMS[number % len(PROGRAMS)]
    names = sorted({atom.predicate for rule in rules for atom in rule.positive_atoms()})
    given = [name for name in names if name != SAME_AS] + [SAME_AS]
    count = random.choice([3, 4, 5])
    middles = {"n": NUMBERS, TRIPLE: PROPERTIES}

    def fact() -> Fact:
        name = random.choice(given)
        row = [random.choice(NAMES[:count]) for _ in range(ARITIES[name])]
        if name in middles:
            row[1] = random.choice(middles[name])
        return name, tuple(row)

    facts = present = frozenset(fact() for _ in range(random.choice([6, 9, 12])))
    updates = []
    out: tuple[Rule, ...] = ()
    """Rules that are not in force for a time."""
    for _ in range(3):
        there = sorted(present, key=repr)
        some = random.sample(there, min(len(there), random.choice([1, 2, 3])))
        delete = frozenset(some)
        insert = frozenset(fact() for _ in range(random.choice([0, 0, 1])))
        removed = (
            () if out or random.random() > RULE_CHANGES else (random.choice(rules),)
        )
        updates.append(Update(delete, insert, removed, out))
        present, out = (present - delete) | insert, removed
    return Scenario(tuple(rules), facts, tuple(updates))
