"""Commands without the packages that some of them need."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PIPELINE = """
[program]
rules = "rules.dl"

[engine]
name = "reference"

[[source]]
path = "edge.csv"
header = false
columns = { from = "string", to = "string" }
predicate = "edge"
arguments = ["from", "to"]

[[output]]
predicates = ["reach"]
path = "out"
"""
COMMANDS = """
import sys
sys.modules["deltalake"] = None
from evermat.cli import run
for command in sys.argv[1:]:
    print(">", command, run(command.split()), file=sys.stderr, flush=True)
import evermat.lake
"""
ADVICE = 'pip install "evermat[lake]"'


def test_without_deltalake_states_are_refused_and_all_else_works(
    tmp_path: Path,
) -> None:
    (tmp_path / "rules.dl").write_text("reach(?x, ?y) :- edge(?x, ?y) .")
    (tmp_path / "edge.csv").write_text("a,b\n")
    (tmp_path / "plain.toml").write_text(PIPELINE)
    (tmp_path / "state.toml").write_text(f'{PIPELINE}\n[state]\npath = "state"\n')
    fine = ["pipeline run plain.toml", "pipeline status plain.toml"]
    refused = [
        "run rules.dl -f edge.csv --engine reference --store kept",
        "query --store kept reach(?x,?y)",
        "update --store kept --insert edge.csv",
        "store history kept",
        "pipeline run state.toml",
        "pipeline status state.toml",
    ]
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, *fine, *refused],
        capture_output=True,
        cwd=tmp_path,
        text=True,
        check=False,
    )
    shown = done.stderr
    for command in fine:
        assert f"> {command} 0\n" in shown
    for command in refused:
        assert f"> {command} 1\n" in shown
    last, traceback = shown.split("Traceback", 1)
    assert last.count(ADVICE) == len(refused)
    assert "MissingPackageError" in traceback.splitlines()[-2]  # of the import
    assert ADVICE in traceback.splitlines()[-1]
