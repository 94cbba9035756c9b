"""The notebooks among the examples run, cell by cell; their asserts hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("**/*.ipynb"))


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.filterwarnings("ignore::evermat.rdf.ontology.IgnoredAxiomsWarning")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_cells_run_in_order(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rdflib")
    monkeypatch.chdir(notebook.parent)
    namespace: dict[str, object] = {}
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            text = "".join(cell["source"])
            exec(compile(text, f"{notebook.name}, cell {number}", "exec"), namespace)  # noqa: S102  the notebook is ours
