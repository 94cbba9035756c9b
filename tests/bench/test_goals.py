from __future__ import annotations

from evermat.bench.maintain import goal_table


def _reached(times: dict[tuple[str, str, str], float]) -> dict[str, str]:
    return {row[0]: row[-1] for row in goal_table(times, {}).rows}


def test_goals_without_figures_are_open() -> None:
    assert set(_reached({}).values()) == {"–"}


def test_ratios_are_compared_with_their_limits() -> None:
    reached = _reached(
        {
            ("sspe", "remat", "delete"): 2.0,
            ("sspe", "dred-c", "delete"): 0.9,
            ("example-1-20k", "dred", "delete"): 1.0,
            ("example-1-20k", "dred-c", "delete"): 0.1,
        }
    )
    assert reached["SSPE, 1000 edges: dred-c in units of remat"] == "yes"
    assert reached["Example 1, n = 20k: dred in units of dred-c"] == "no"
    assert reached["Example 1, n = 20k: dred in units of bf-c"] == "–"


def test_the_worst_case_decides() -> None:
    times = {
        ("sspe-2pc", "remat", "delete"): 1.0,
        ("sspe-2pc", "auto", "delete"): 1.0,
        ("points-to-50pc", "remat", "delete"): 1.0,
        ("points-to-50pc", "auto", "delete"): 1.2,
    }
    reached = _reached(times)
    assert reached["large deletions: auto in units of remat, at worst"] == "no"
    assert reached["auto in units of the best algorithm, at worst"] == "yes"
    times["points-to-50pc", "fp", "delete"] = 0.5
    reached = _reached(times)
    assert reached["auto in units of the best algorithm, at worst"] == "no"


def test_single_facts_have_a_time_limit() -> None:
    reached = _reached({("one-of-1m", "auto", "delete"): 0.004})
    assert reached["delete one fact of 1 M, by auto"] == "yes"
    assert reached["delete one fact of 10 M, by auto"] == "–"


def test_counters_are_judged_by_the_workload_where_they_cost_most() -> None:
    rows = goal_table({}, {"sspe": 1.1, "dag-linear": 1.3}).rows
    verdicts = {row[0]: (row[1], row[-1]) for row in rows}
    title = "counters at materialisation, in units of none, at worst"
    assert verdicts[title] == ("1.30×", "no")
