"""The closures of real rule sets are found; the paper counts the first two sorts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from evermat.cli.checking import Syntax, read_program
from evermat.lang.normalise import normalise
from evermat.lang.strata import stratify
from evermat.maintenance.modules import find_modules

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "transitive", "symmetric"),
    [("LUBM_L", 1, 0), ("LUBM_LE", 1, 2), ("Claros_LE", 27, 3)],
)
def test_closures_of_rule_sets(
    name: str, transitive: int, symmetric: int, shared_data: Path
) -> None:
    program = read_program(shared_data / "rulesets" / f"{name}.dlog", Syntax.AUTO)
    found = Counter(
        module.name
        for stratum in stratify(normalise(program.rules)).strata
        for module in find_modules(stratum.recursive_rules, stratum.is_local)
    )
    assert found["transitive closure"] == transitive
    assert found["symmetric-transitive closure"] == symmetric
