"""One's own data, files for others, the page, and comparisons."""

from __future__ import annotations

import json
from copy import deepcopy
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree  # noqa: ICN001

import pytest
from typer.testing import CliRunner

from evermat.bench.comparing import compare
from evermat.bench.exporting import export
from evermat.bench.page import page
from evermat.bench.plots import Scale, colour_of, dots, legend
from evermat.cli.app import app

if TYPE_CHECKING:
    from pathlib import Path

WORKLOAD = "dag-nonlinear"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (folder,) = export(tmp_path_factory.mktemp("w"), scale=0.0005, only=[WORKLOAD])
    return folder


@pytest.fixture(scope="module")
def figures(exported: Path) -> dict[str, Any]:
    file = exported / "figures.json"
    arguments = ["bench", "run", "--json", str(file)]
    arguments += ["--program", str(exported / "program.dl")]
    arguments += ["--facts", str(exported / "facts")]
    arguments += ["--updates", str(exported / "updates")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def test_every_way_ends_with_the_exported_answers(
    exported: Path, figures: dict[str, Any]
) -> None:
    answers = json.loads((exported / "answers.json").read_text(encoding="utf-8"))
    steps = [step for step in figures["steps"] if step["seconds"] is not None]
    assert {step["way"] for step in steps} >= {"default", "remat", "bf-c", "fp"}
    for step in steps:
        expected = sum(each["facts"] for each in answers[step["update"]].values())
        assert step["facts"] == expected
    refused = {s["way"] for s in figures["steps"] if s["ending"] == "n/a"}
    assert refused == {"counting"}
    assert not figures["disagreements"]


def test_digests_are_those_of_the_lines(exported: Path) -> None:
    answers = json.loads((exported / "answers.json").read_text(encoding="utf-8"))
    text = (exported / "facts" / "edge.csv").read_text(encoding="utf-8")
    rows = [line.replace(",", "\t") + "\n" for line in text.splitlines()]
    rows = [row for row in rows if row[0].isdigit()]
    digest = sha256("".join(sorted(rows)).encode()).hexdigest()
    assert answers["loaded"]["edge"] == {"facts": len(rows), "sha256": digest}


def test_without_updates_random_facts_go_and_come(exported: Path) -> None:
    arguments = ["bench", "run", "--way", "dred-c", "--way", "remat"]
    arguments += ["--program", str(exported / "program.dl")]
    done = CliRunner().invoke(
        app, [*arguments, "--facts", str(exported / "facts" / "edge.csv")]
    )
    assert done.exit_code == 0, done.output
    assert "delete 1 " in done.output
    assert "All ways agree" in done.output


def test_an_unknown_way_is_refused(exported: Path) -> None:
    arguments = ["bench", "run", "--way", "quick"]
    arguments += ["--program", str(exported / "program.dl"), "--facts", "x.csv"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert "there is no way `quick`" in done.output


# ------------------------------------------------------------------------------ page


def test_the_page_needs_nothing_else(figures: dict[str, Any]) -> None:
    text = page([figures])
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in text
    plots = text.split("<svg")[1:]
    assert len(plots) >= 3
    for plot in plots:
        svg = ElementTree.fromstring("<svg" + plot.partition("</svg>")[0] + "</svg>")  # noqa: S314  our own
        assert len(svg) > 3


def test_names_in_the_page_are_text(figures: dict[str, Any]) -> None:
    changed = deepcopy(figures)
    for step in changed["steps"]:
        step["update"] = "<b>&"
    text = page([changed])
    assert "<b>&" not in text
    assert "&lt;b&gt;&amp;" in text


def test_labels_fit_and_ways_keep_their_colours() -> None:
    label = "terminology, classified by the rules of EL, scale 1: small deletion"
    rows = [(label, {"bf": 0.1, "default": 0.2}), ("short", {"bf": 0.3})]
    svg = ElementTree.fromstring(dots(rows, ["bf", "default"], str))  # noqa: S314  our own
    space = "{http://www.w3.org/2000/svg}"
    for text in svg.findall(f"{space}text"):
        if "label" in text.get("class", ""):
            assert 6.6 * len(text.text or "") <= float(text.get("x", "0"))
    first, *_ = svg.findall(f"{space}circle")
    assert first.get("class") == "c4" == f"c{colour_of('bf', ['other', 'bf'])}"
    assert 'class="key k4"' in legend(["other", "bf"])


def test_a_scale_keeps_ratios() -> None:
    scale = Scale.over([0.002, 3.0], 0.0, 400.0)
    assert (scale.low, scale.high) == (-3, 1)
    assert scale.place(0.01) - scale.place(0.001) == pytest.approx(100.0)
    assert scale.place(10.0) == 400.0


def test_files_without_figures_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    for text in ("{}", "[1]", "no", '{"suite": "nothing"}'):
        other.write_text(text, encoding="utf-8")
        done = CliRunner().invoke(app, ["bench", "report", str(other)])
        assert done.exit_code != 0


# ------------------------------------------------------------------------ comparing


def content(factor: float, **changed: float) -> dict[str, Any]:
    """Figures of two algorithms in ten cases, some of them times something."""
    rows = []
    for case in range(10):
        for algorithm in ("bf", "dred"):
            noise = 1 + 0.02 * ((case * 7 + len(algorithm)) % 5)
            name = f"{algorithm}{case}"
            seconds = 0.01 * factor * noise * changed.get(name, 1.0)
            rows.append(
                {
                    "case": f"case {case}",
                    "algorithm": algorithm,
                    "seconds": {"delete": seconds},
                }
            )
    return {"suite": "maintain", "rows": rows}


def test_a_slower_machine_is_no_regression() -> None:
    found = compare(content(1.0), content(1.7))
    assert found.machine == pytest.approx(1.7)
    assert not found.slower
    assert not found.faster
    assert found.same == 20


def test_a_regression_is_told_from_noise() -> None:
    found = compare(content(1.0), content(1.4, bf3=2.5, dred7=0.3))
    assert [name for name, *_ in found.slower] == ["maintain · case 3 · bf · delete"]
    assert [name for name, *_ in found.faster] == ["maintain · case 7 · dred · delete"]
    assert found.slower[0][3] == pytest.approx(2.5, rel=0.05)


def test_ranges_that_meet_are_noise() -> None:
    before, after = content(1.0), content(1.0, bf3=3.0)
    assert compare(before, after).slower
    for content_, worst in ((before, 0.05), (after, 0.06)):
        row = next(r for r in content_["rows"] if r["case"] == "case 3")
        seconds = row.pop("seconds")["delete"]
        content_["rows"].append(
            {**row, "seconds": seconds, "best": seconds / 2, "worst": worst}
        )
    assert not compare(before, after).slower


def test_runs_without_common_figures_are_refused() -> None:
    with pytest.raises(ValueError, match="no figures in common"):
        compare(content(1.0), {"suite": "modules", "rows": []})


def test_the_command_ends_with_one_where_something_became_slower(
    tmp_path: Path,
) -> None:
    for name, figures_ in (("a", content(1.0)), ("b", content(1.0, bf3=4.0))):
        text = json.dumps(figures_)
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    first, second = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    done = CliRunner().invoke(app, ["bench", "compare", first, second])
    assert done.exit_code == 1
    assert "case 3 · bf" in done.output
    assert CliRunner().invoke(app, ["bench", "compare", first, first]).exit_code == 0
