"""The harness runs from end to end, at a scale at which nothing can be learnt."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from evermat.bench import maintain, materialise, run
from evermat.bench.processes import (
    Measured,
    Options,
    Status,
    measure,
    median,
    prepared,
    reason_in,
    script_seconds,
)

if TYPE_CHECKING:
    from pathlib import Path


TINY = 0.002


def _part(name: str) -> str:
    return f"<!-- bench {name} -->\n<!-- end of bench {name} -->\n"


def test_a_measurement_has_a_process_of_its_own() -> None:
    with prepared("dag-linear", TINY) as folders:
        task = {"task": "materialise", "counters": True, "repeat": 2, **folders}
        measured = measure(task, time_limit=300)
    assert measured.status is Status.DONE
    first, second = measured.of("materialised")
    assert first["facts"] == second["facts"] > first["explicit"]
    assert second["peak_megabytes"] > 10


@pytest.mark.usefixtures("in_process")
def test_materialise_measures_us_and_peers_and_agrees_with_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document, figures = tmp_path / "page.md", tmp_path / "figures.json"
    document.write_text(_part("materialise"), encoding="utf-8")
    run(
        "materialise",
        scale=TINY,
        repeat=1,
        only=["points-to"],
        json=figures,
        write=document,
    )
    found = json.loads(figures.read_text(encoding="utf-8"))
    rows = {(row["system"], row["scale"]): row for row in found["rows"]}
    facts = {row["facts"] for (_, scale), row in rows.items() if scale == TINY}
    assert len(facts) == 1
    assert {row["status"] for row in rows.values()} == {"done"}
    assert {system for system, _ in rows} == {
        *(materialise.WITH_COUNTERS, materialise.WITHOUT_COUNTERS),
        *("clingo", "duckdb"),
    }
    assert rows[materialise.WITH_COUNTERS, TINY]["instances"] > 0
    assert found["start"]["import_seconds"] is not None
    assert found["start"]["example_seconds"] is not None
    assert "points-to analysis" in document.read_text(encoding="utf-8")
    printed = capsys.readouterr().out
    assert "points-to analysis" in printed
    assert "Materialisation (at scale 0.002)" in printed


@pytest.mark.usefixtures("in_process")
def test_maintain_measures_every_algorithm_and_all_agree(tmp_path: Path) -> None:
    document = tmp_path / "page.md"
    document.write_text(_part("maintain"), encoding="utf-8")
    found: dict[str, Any] = run(
        "maintain", scale=TINY, only=["example-1-20k"], write=document
    )
    rows = {row["algorithm"]: row for row in found["rows"]}
    assert set(rows) == set(maintain.ALGORITHMS)
    assert {row["status"] for row in rows.values()} == {"done"}
    assert {row["removed"] for row in rows.values()} == {4 * 40.0}
    assert found["disagreements"] == ()
    assert "Example 1" in document.read_text(encoding="utf-8")


@pytest.mark.usefixtures("in_process")
def test_counting_refuses_a_recursive_program() -> None:
    options = Options(scale=TINY, only=("dag-nonlinear-2pc",))
    found = maintain.run(options)
    assert found.of("dag-nonlinear-2pc")["counting"].status == Status.REFUSED
    assert found.disagreements == ()
    deleting, *_ = maintain.tables(found, options)
    assert "n/a" in deleting.rows[0]


@pytest.mark.parametrize(
    ("suite", "only"), [("materialise", ["nothing"]), ("maintain", ["nothing"])]
)
def test_unknown_names_are_refused(suite: str, only: list[str]) -> None:
    with pytest.raises(ValueError, match="there is no `nothing`"):
        run(suite, only=only)


def test_an_unknown_suite_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no suite `speed`"):
        run("speed")


def test_a_process_is_stopped_at_its_time_limit() -> None:
    task = {"task": "generate", "workload": "universities-50", "folders": {}}
    stopped = measure(task, time_limit=0.01)
    assert stopped.status is Status.TIME_LIMIT
    assert script_seconds("while True: pass", time_limit=0.1) is None


def test_a_failing_process_says_why() -> None:
    failed = measure(
        {"task": "generate", "workload": "none", "folders": {}}, time_limit=60
    )
    assert failed.status is Status.FAILED
    assert failed.message == "KeyError: 'none'"
    assert script_seconds("raise SystemExit(1)", time_limit=60) is None


def test_disagreements_are_found() -> None:
    record = {"event": "updated", "sample": 0, "step": "delete", "added": 0}
    measured = {
        "remat": [Measured(Status.DONE, ({**record, "removed": 1},))],
        "dred": [Measured(Status.DONE, ({**record, "removed": 2},))],
    }
    (told,) = maintain.find_disagreements(maintain.CASES[0], measured)
    assert "dred reports -2 +0" in told


def test_no_two_updates_have_the_same_name() -> None:
    names = [case.name for case in maintain.CASES]
    assert len(set(names)) == len(names)


def test_medians_are_of_what_was_measured() -> None:
    assert median([], "seconds") is None
    assert median([{"seconds": 3.0}, {"seconds": 1.0}], "seconds") == 2.0
    assert median([{"s": 3.0}, {"s": 1.0}, {"s": 5.0}], "s") == 3.0


def test_the_deepest_cause_of_a_failure_is_told() -> None:
    python = 'Traceback (most recent call last):\n  File "x.py", line 1\nKeyError: 1\n'
    java = "py4j.Py4JJavaError: o1\n\tat a.B\nCaused by: a.OutOfRoom: x\n\t... 1 more\n"
    assert reason_in(python) == "KeyError: 1"
    assert reason_in(python + java) == "Caused by: a.OutOfRoom: x"
    assert reason_in("") == ""


@pytest.mark.slow  # the data are a whole university
def test_rdf_measures_us_and_peers(
    shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVERMAT_TEST_DATA", str(shared_data))
    figures = tmp_path / "figures.json"
    run("rdf", scale=0.02, repeat=1, json=figures)
    found = json.loads(figures.read_text(encoding="utf-8"))
    rows = found["triples"]
    assert len({rows[f"query {n}"]["evermat"] for n in (6, 8)}) == 1
    for name in (f"query {number}" for number in range(1, 15)):
        counts = rows.get(name, {"evermat": 0, "pyoxigraph": 0})
        assert counts["evermat"] == counts["pyoxigraph"], name
    assert found["seconds"]["delete a triple"]["evermat"] > 0
    differences = {
        (each["job"], each["peer"]): (each["only_ours"], each["only_theirs"])
        for each in found["differences"]
        if each["system"] == "evermat"
    }
    for job in ("LUBM look-alike", "Brick 1.1 and buildings", "Gene Ontology"):
        assert differences[job, "reasonable"] == (0, 0)
