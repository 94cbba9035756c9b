"""A short run of the mutation harness; the long one is `tests/fuzz_input.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_mutated_input_does_no_harm(tmp_path: Path) -> None:
    script = Path(__file__).parent / "fuzz_input.py"
    amounts = ["--programs", "150", "--files", "100", "--seed", "22"]
    command = [sys.executable, str(script), *amounts, "--save", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=600
    )
    notes = [note.read_text() for note in sorted(tmp_path.glob("*.note"))]
    assert done.returncode == 0, "\n".join([done.stdout, done.stderr, *notes])
