"""How much of our code a newcomer walks through who follows one call.

The calls are those of the README, in a process of their own, after a first call of the
same kind: what is loaded or prepared only once does not count. The numbers are ceilings
that may only be lowered.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

WALK = """
import json, sys, evermat

kb = evermat.KnowledgeBase('''
    reach(?x, ?y) :- edge(?x, ?y) .
    reach(?x, ?z) :- reach(?x, ?y), edge(?y, ?z) .
''')
kb.load({"edge": [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("d", "e")]})
calls = {
    "delete": lambda edge: kb.delete("edge", [edge]),
    "query": lambda edge: kb.query("reach(?x, 'd')").to_list(),
    "new query": lambda edge: kb.query(f"reach(?{edge[1]}, 'd')").to_list(),
}
walked = {}
for name, call in calls.items():
    call(("d", "e"))
    functions = set()

    def note(frame, event, _, functions=functions):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(evermat.__path__[0]):
            functions.add((code.co_filename, code.co_name, code.co_firstlineno))

    sys.setprofile(note)
    call(("b", "c"))
    sys.setprofile(None)
    walked[name] = [len({file for file, _, _ in functions}), len(functions)]
print(json.dumps(walked))
"""

CEILINGS = {"delete": (36, 355), "query": (18, 110), "new query": (27, 213)}
"""For each call the files and the functions of ours that it touches."""


@pytest.fixture(scope="module")
def walked() -> dict[str, tuple[int, int]]:
    done = subprocess.run(
        [sys.executable, "-c", WALK], check=True, capture_output=True, text=True
    )
    found: dict[str, tuple[int, int]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("call", CEILINGS)
def test_a_call_touches_no_more_than_it_did(
    walked: dict[str, tuple[int, int]], call: str
) -> None:
    files, functions = walked[call]
    assert files <= CEILINGS[call][0]
    assert functions <= CEILINGS[call][1]
