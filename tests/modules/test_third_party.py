"""A module that is registered from outside takes part like the others."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from engine_facts import make_facts
from evermat.engines import make_engine
from evermat.lang.parser import parse_rules
from evermat.maintenance.modules import (
    NotAFinderError,
    register_module,
    unregister_module,
)
from strategies import Update
from tracked import ALGORITHMS, Tracked

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "symmetric_module.py"
RULES = """
    s(?y, ?x) :- s(?x, ?y) .
    s(?x, ?y) :- e(?x, ?y) .
    s(?x, ?z) :- r(?x, ?y), f(?y, ?z) .
    r(?x, ?z) :- r(?x, ?y), r(?y, ?z) .
    r(?x, ?y) :- s(?x, ?y), a(?x) .
    n(?x) :- a(?x), not s(?x, ?x) .
"""


@pytest.fixture
def finder() -> Iterator[object]:
    found = runpy.run_path(str(EXAMPLE))["find_symmetric"]
    register_module(found)
    yield found
    unregister_module(found)


@pytest.mark.usefixtures("finder")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_oracle_with_the_module_of_the_example(
    algorithm: str, engine_name: str
) -> None:
    tracked = Tracked(make_engine(engine_name), modules=True)
    facts = make_facts(
        e=[(1, 2), (2, 3), (3, 4)], s=[(5, 1)], f=[(2, 5), (4, 1)], a=[(1,), (2,), (5,)]
    )
    # The rule that reads `r` for `s` would put the two into one component.
    tracked.load(parse_rules(RULES), facts)
    names = {module.name for module in tracked.materialisation.modules}
    assert "transitive closure" in names
    for update in (
        Update(delete=frozenset(make_facts(e=[(1, 2)]))),
        Update(insert=frozenset(make_facts(e=[(1, 2), (4, 5)]))),
        Update(delete=frozenset(make_facts(s=[(5, 1)], a=[(2,)]))),
        Update(delete=frozenset(make_facts(e=[(2, 3)], f=[(4, 1)]))),
    ):
        tracked.apply(update, algorithm)


@pytest.mark.usefixtures("finder")
def test_the_module_is_used() -> None:
    tracked = Tracked(make_engine("reference"), modules=True)
    tracked.load(parse_rules("s(?y, ?x) :- s(?x, ?y) ."), make_facts(s=[(1, 2)]))
    names = [module.name for module in tracked.materialisation.modules]
    assert names == ["symmetric relation"]


@pytest.mark.parametrize("finder", [3, None, "find_symmetric"])
def test_what_finds_nothing_is_refused_at_once(finder: Any) -> None:
    with pytest.raises(NotAFinderError, match="finds no modules") as caught:
        register_module(finder)
    assert caught.value.help is not None
