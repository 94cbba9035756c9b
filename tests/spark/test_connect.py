"""The engine over Spark Connect, in a process of its own: sessions do not mix."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import connect_session
import evermat

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_remote_session_gives_the_same(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="make test-spark needs the group `connect`")
    done = subprocess.run(
        [sys.executable, str(Path(connect_session.__file__)), str(tmp_path / "state")],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    kb = evermat.KnowledgeBase(connect_session.RULES)
    kb.insert("edge", connect_session.EDGES)
    kb.insert("node", connect_session.NODES)
    kb.insert("number", connect_session.NUMBERS)
    kb.update(
        delete={"edge": connect_session.DELETED},
        insert={"edge": connect_session.INSERTED},
    )
    assert found["session"].startswith("pyspark.sql.connect")
    assert found["place"] == "distributed over the cluster"
    assert found["contents"] == connect_session.contents(kb)
    assert found["rows"] == kb.count("reach")
