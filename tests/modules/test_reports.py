"""Reports say which algorithm ran in each stratum, and how."""

from __future__ import annotations

import pytest

import evermat

RULES = """
    path(?x, ?y) :- edge(?x, ?y) .
    path(?x, ?z) :- path(?x, ?y), path(?y, ?z) .
    end(?x) :- path(?x, ?y), last(?y) .
    near(?x, ?y) :- end(?x), link(?x, ?y) .
    near(?x, ?z) :- near(?x, ?y), link(?y, ?z), not stop(?z) .
"""


@pytest.mark.parametrize(
    ("algorithm", "with_modules"),
    [
        ("dred-c", "dred-c + modules"),
        ("dred", "dred-c + modules"),
        ("fp", "dred-c + modules"),
        ("bf", "bf-c + modules"),
        ("bf-c", "bf-c + modules"),
    ],
)
def test_a_stratum_names_the_algorithm_that_ran(
    algorithm: str, with_modules: str
) -> None:
    kb = evermat.KnowledgeBase(RULES, modules=True)
    kb.load(
        {
            "edge": [(i, i + 1) for i in range(300)],
            "last": [(300,)],
            "stop": [(50,)],
            "link": [(i, i + 2) for i in range(300)],
        }
    )
    change = kb.update(delete={"edge": [(5, 6)]}, algorithm=algorithm)
    told = {
        (stratum.algorithm, stratum.path)
        for stratum in change.report.strata
        if stratum.rounds
    }
    names = {name for name, _ in told}
    assert names <= {with_modules, algorithm}
    assert algorithm in names
    if with_modules in names:
        assert (with_modules, "batched") in told
    # What B/F deletes between two searches is worked out by operators.
    expected = "mixed" if algorithm.startswith("bf") else "compiled"
    assert (algorithm, expected) in told
    assert sum(sum(s.seconds.values()) for s in change.report.strata) <= (
        change.report.seconds
    )


def test_modules_are_named() -> None:
    kb = evermat.KnowledgeBase(RULES, modules=True)
    kb.load({"edge": [(i, i + 1) for i in range(300)], "last": [], "link": []})
    names = {stratum.algorithm for stratum in kb.materialise().report.strata}
    assert names <= {"remat", "remat + modules"}
    change = kb.delete("edge", [(5, 6)])
    named = [s.algorithm for s in change.report.strata if s.overdeleted and s.index]
    assert named == ["dred-c + modules"]
