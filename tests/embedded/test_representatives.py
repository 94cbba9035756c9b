"""Cliques among many constants: what is copied is no less than what there is."""

from __future__ import annotations

from collections import defaultdict

import evermat
from evermat.engines.embedded.union_find import BLOCK


def _cliques(base: evermat.KnowledgeBase) -> set[frozenset[object]]:
    members = defaultdict(set)
    for member, one in base.representatives():
        members[one].add(member)
    return {frozenset(clique) for clique in members.values()}


def test_law_copies_keep_cliques_wherever_their_names_are() -> None:
    base = evermat.KnowledgeBase("", equality="rewrite", engine="embedded")
    names = [f"n{number}" for number in range(4 * BLOCK)]
    early, late, last = names[:2], names[2 * BLOCK : 2 * BLOCK + 3], names[-2:]
    pairs = [early, late[:2], late[1:], last]
    base.load({"p": [(name,) for name in names], "same_as": pairs})
    everything = {frozenset(each) for each in (early, late, last)}
    assert _cliques(base) == everything

    change = base.update(delete={"same_as": [late[1:]]}, algorithm="bf")
    assert _cliques(base) == {frozenset(each) for each in (early, late[:2], last)}
    assert change.report.deleted == 1

    more = [f"m{number}" for number in range(2 * BLOCK)]
    base.update(
        insert={"p": [(name,) for name in more], "same_as": [late[1:], more[-2:]]},
        algorithm="bf",
    )
    assert _cliques(base) == everything | {frozenset(more[-2:])}
