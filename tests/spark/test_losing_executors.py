"""A cluster of several processes loses an executor in the middle of a fixpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import evermat

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_the_answer_is_the_same() -> None:
    losing = pytest.importorskip("losing_executors")
    done = subprocess.run(
        [sys.executable, str(Path(losing.__file__))],
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["executors"] == 2
    assert answer["killed"] == 1
    assert answer["rounds"] > 2
    kb = evermat.KnowledgeBase(losing.RULES)
    kb.insert("up", losing.tree())
    assert answer["same"] == sorted(map(list, kb.counters("same")))
