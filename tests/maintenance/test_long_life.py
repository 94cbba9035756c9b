"""A knowledge base that lives long: nothing is kept of what has gone."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from evermat import KnowledgeBase
from evermat.engines.embedded.dictionary import (
    FEW_CONSTANTS,
    MOST_SEQUENCES,
    RememberedIds,
)
from evermat.engines.embedded.triggers import UPDATES
from evermat.values import Constant, constant

if TYPE_CHECKING:
    from collections.abc import Sequence

TEMPLATES = (
    "step(?x, ?y) :- edge(?x, ?y), not closed_{0}(?x) .",
    "[?x, a, <c{0}>] :- [?x, a, <b>] .",
    "reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z), ?x != n{0} .",
)
KEPT = (
    "reach(?x, ?y) :- edge(?x, ?y) .",
    "[?x, a, <c>] :- [?x, a, <b>] .",
    "[?x, a, <d>] :- [?x, a, <c>] .",
)


def _living() -> Counter[str]:
    gc.collect()
    names = (type(each).__name__ for each in gc.get_objects())
    watched = {"Query", "QuerySet", "Plan", "Prepared", "Program", "Region", "Pattern"}
    return Counter(name for name in names if name in watched)


def _live(kb: KnowledgeBase, numbers: range) -> None:
    for number in numbers:
        rules = [template.format(number) for template in TEMPLATES]
        kb.update(add_rules=rules, insert={"edge": [("n0", f"n{number}")]})
        kb.update(remove_rules=rules, delete={"edge": [("n0", f"n{number}")]})
        kb.query("reach(?x, ?y), not edge(?x, ?y)")


@pytest.mark.parametrize("equality", ["off", "rewrite"])
@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_rules_that_went_leave_nothing_behind(engine: str, equality: str) -> None:
    kb = KnowledgeBase(KEPT, engine=engine, equality=equality)  # type: ignore[arg-type]
    kb.insert("edge", [("n0", "n1"), ("n1", "n2")])
    kb.query("[?x, a, ?c]")
    _live(kb, range(10))
    before = _living()
    _live(kb, range(10, 50))
    grown = _living() - before
    # What was made for the rules of the last updates may still be there: ten objects
    # for each of them. If all stayed, there would be some eight hundred more.
    assert grown.total() < 20 * UPDATES, grown


def test_ids_of_few_sequences_are_remembered() -> None:
    asked: list[int] = []

    def encode(constants: Sequence[Constant]) -> int:
        asked.append(len(constants))
        return len(asked)

    remembered = RememberedIds(encode)
    few = [constant(1)]
    many = [Many([constant(each)] * (FEW_CONSTANTS + 1)) for each in range(100)]
    assert [remembered.of(few), remembered.of(few)] == [1, 2]
    for sequence in many:
        assert remembered.of(sequence) == remembered.of(sequence)
    held = [weakref.ref(each) for each in many]
    del many, sequence
    assert 0 < sum(each() is not None for each in held) <= MOST_SEQUENCES


class Many(list[Constant]):
    """Constants of which one can see whether anybody still has them."""


@pytest.mark.parametrize("engine", ["embedded", "reference"])
def test_statistics_count_the_facts_of_closures_that_are_written_out(
    engine: str,
) -> None:
    kb = KnowledgeBase(
        "reach(?x, ?y) :- edge(?x, ?y) .\n"
        "reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) .",
        engine=engine,
    )
    kb.insert("edge", [(n, n + 1) for n in range(20)])
    kb.update(add_rules="far(?x, ?y) :- reach(?x, ?y), not edge(?x, ?y) .")
    kb.delete("edge", [(10, 11), (15, 16)])
    materialisation = kb._session._materialisation  # noqa: SLF001
    sizes = materialisation.engine.statistics().values()
    history = materialisation._history  # noqa: SLF001
    assert history.facts == sum(size["facts"] for size in sizes) > 0
    assert history.explicit == 18
    kb.delete("edge", [(n, n + 1) for n in range(20)])
    assert materialisation._history.facts == 0  # noqa: SLF001
