"""Rules with very many parts: they run, or are refused in our own words."""

from __future__ import annotations

import pytest

from evermat import KnowledgeBase
from evermat.errors import BodyLengthError
from evermat.lang.checks import MOST_ATOMS


def chain(length: int) -> str:
    atoms = (f"edge(?x{at}, ?x{at + 1})" for at in range(length))
    return f"far(?x0, ?x{length}) :- {', '.join(atoms)} ."


def differences(length: int) -> str:
    return f"p(?x), {', '.join(f'?x != {number + 10}' for number in range(length))}"


@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_the_longest_rules_run(engine: str) -> None:
    kb = KnowledgeBase(chain(MOST_ATOMS), engine=engine)
    kb.load({"edge": [(1, 1)], "p": [(1,), (10,)]})
    assert kb.facts("far").to_list() == [(1, 1)]
    assert kb.query(differences(2 * MOST_ATOMS - 2)).to_list() == [(1,)]


# A deletion asks one query for each atom, and each of them is planned.
@pytest.mark.parametrize(
    "length", [MOST_ATOMS // 5, pytest.param(MOST_ATOMS, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_facts_of_long_rules_are_deleted(engine: str, length: int) -> None:
    kb = KnowledgeBase(chain(length), engine=engine)
    kb.load({"edge": [(1, 1)]})
    assert kb.count("far")
    kb.delete("edge", [(1, 1)])
    assert not kb.count("far")


def test_longer_ones_are_refused() -> None:
    with pytest.raises(BodyLengthError, match="has 301 atoms and 0 other parts"):
        KnowledgeBase(chain(MOST_ATOMS + 1))
    kb = KnowledgeBase("p(1) .")
    with pytest.raises(BodyLengthError, match="has 1 atom and 600 other parts"):
        kb.query(differences(2 * MOST_ATOMS))
