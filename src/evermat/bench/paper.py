"""The suite `paper`: the tables of the papers, with the papers' figures.

The data are look-alikes, and small: figures to compare with a paper are ratios between
algorithms, not times. Where Evermat's ratio and the paper's are on different sides of
one, a note says so, with the work that was done.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any

from evermat.bench import published
from evermat.bench.generators.closures import categories, organisations
from evermat.bench.generators.equalities import ontology_equalities
from evermat.bench.generators.graphs import nonlinear_closure, path_lengths
from evermat.bench.generators.lookalikes import (
    Shape,
    claros,
    related_places,
    triples_with_rules,
    uobm,
    uobm_with_equality,
    with_equal_names,
)
from evermat.bench.processes import Measured, Status, measure, say
from evermat.bench.report import Table, count_text, seconds_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from evermat.bench.generators.problem import Problem
    from evermat.bench.processes import Options, Record

FACTS = 60_000
"""Explicit facts of most look-alikes at scale 1."""


@dataclass(frozen=True, slots=True)
class Row:
    """One data set of the papers.

    Attributes:
        name: its name in the papers.
        make: the look-alike, from a scale.
        tables: the tables in which it is a row.
        axioms: whether axioms of equality are feasible at this size.
    """

    name: str
    make: Callable[[float], Problem]
    tables: tuple[str, ...]
    axioms: bool = True


def _sized(make: Callable[[int], Problem], size: int, scale: float) -> Problem:
    return make(max(40, round(size * scale)))


def _triples(shape: Shape, scale: float) -> Problem:
    return triples_with_rules(shape, max(200, round(FACTS * scale)))


def _equal(shape: Shape, cliques: int, size: int, scale: float) -> Problem:
    problem = _triples(shape, scale)
    return with_equal_names(problem, max(1, round(cliques * scale)), size)


def _sspe(scale: float) -> Problem:
    nodes = max(20, round(10_000 * scale))
    return path_lengths(nodes, min(10 * nodes, nodes * (nodes - 1) // 2))


def _dag(scale: float) -> Problem:
    nodes = max(10, round(1_500 * sqrt(scale)))
    return nonlinear_closure(nodes, min(10 * nodes, nodes * (nodes - 1) // 2))


def _claros(scale: float) -> Problem:
    return claros(max(20, round(200 * scale)), max(50, round(15_000 * scale)), 1_000)


def _claros_with_equality(places: int, scale: float) -> Problem:
    problem = _equal(Shape(1_200, 100, 5), 60, 20, scale)
    if not places:
        return problem
    size = max(4, round(places * sqrt(scale)))
    return related_places(problem, 4 * size, size)


def _uobm_with_equality(clique: int, scale: float) -> Problem:
    size = round(clique * sqrt(scale))
    return uobm_with_equality(max(2_000, round(FACTS * scale)), size)


def _open_cyc(scale: float) -> Problem:
    return ontology_equalities(
        max(600, round(20_000 * scale)), max(100, round(10_000 * scale))
    )


_RULES = 1_000


def _thousand_rules(scale: float) -> Problem:
    # Random rules may be the same, so more are made than are taken.
    problem = _triples(Shape(1_250, 250, 4), scale)
    prefix, *rules = problem.rules.splitlines()
    some = [rules[at * len(rules) // _RULES] for at in range(_RULES)]
    return replace(problem, rules="\n".join([prefix, *some]))


DELETIONS = ("000-1", "000-2")
UOBM_R = Shape(60, 2_150, 6)
ROWS = (
    Row("UOBM-U", partial(_sized, partial(uobm, None), FACTS), DELETIONS),
    Row(
        "UOBM-R", partial(_sized, partial(uobm, Shape(60, 2_150, 6)), FACTS), DELETIONS
    ),
    Row("Reactome-U", partial(_triples, Shape(814, 28, 9, hubs=0.3)), DELETIONS),
    Row("Reactome-R", partial(_triples, Shape(0, 21_385, 1)), DELETIONS),
    Row("Uniprot-R", partial(_triples, Shape(9_312, 2_706, 5)), DELETIONS),
    Row("ChemBL-R", partial(_triples, Shape(1_766, 499, 3)), DELETIONS),
    Row("Claros-LE", _claros, (*DELETIONS, "003")),
    Row("SSPE", _sspe, DELETIONS),
    Row("UOBM-100-L", partial(_uobm_with_equality, 0), ("001-1",)),
    Row("UOBM-100-U", partial(_uobm_with_equality, 400), ("001-1",), axioms=False),
    Row("Claros-L", partial(_claros_with_equality, 0), ("001-1",)),
    Row("Claros-LE with ≈", partial(_claros_with_equality, 100), ("001-1",)),
    Row("DBpedia-L", partial(_equal, Shape(3_300, 100, 3), 100, 2), ("001-1",)),
    Row("UniProt-L", partial(_equal, Shape(430, 20, 3), 600, 2), ("001-1",)),
    Row("OpenCyc-L", _open_cyc, ("001-1",), axioms=False),
    Row("LUBM-LE", partial(_sized, organisations, 6_000), ("003",)),
    Row("DBpedia-SKOS", partial(_sized, categories, 40_000), ("003",)),
    Row("DAG-R", _dag, ("003",)),
    Row("1,000 rules", _thousand_rules, ("rules",)),
    Row("worked examples", _sspe, ("examples",)),
)
"""All rows, in the order of the papers' tables."""

TITLES = {
    "000-1": "small",
    "000-2": "large",
    "001-1": "equality",
    "003": "modules",
    "rules": "rules",
    "examples": "examples",
}
"""All names that are accepted on the command line, and how they are measured."""
NAMES = (*TITLES, *(row.name for row in ROWS))


def tiny(kind: str) -> Problem:
    """Return a tiny problem that warms up the code for any row of a table."""
    problem = triples_with_rules(Shape(40, 20, 2, hubs=0.1), 300)
    return with_equal_names(problem, 5, 2) if kind == "equality" else problem


@dataclass(slots=True)
class Figures:
    """The figures: for each table, the records of each row.

    Attributes:
        tables: the records by the table's and the row's name.
        endings: the ends of rows that did not finish.
    """

    tables: dict[str, dict[str, list[Record]]] = field(default_factory=dict)
    endings: dict[str, str] = field(default_factory=dict)

    def of(self, table: str, row: str, event: str) -> dict[str, Record]:
        """Return the records of one event, by way."""
        records = self.tables.get(table, {}).get(row, [])
        return {
            record.get("way", ""): record
            for record in records
            if record["event"] == event
        }


def run(options: Options) -> Figures:
    """Measure all selected rows."""
    figures = Figures()
    for table, kind in TITLES.items():
        for row in ROWS:
            is_wanted = options.wants(table) or options.wants(row.name)
            if table not in row.tables or not is_wanted:
                continue
            say(f"{table}, {row.name} …")
            task = {
                "task": "paper",
                "table": kind,
                "row": row.name,
                "scale": options.scale,
                "axioms": row.axioms,
            }
            measured = measure(task, time_limit=options.time_limit)
            figures.tables.setdefault(table, {})[row.name] = list(measured.records)
            if measured.status is not Status.DONE:
                figures.endings[f"{table}, {row.name}"] = _ending(measured, options)
    return figures


def _ending(measured: Measured, options: Options) -> str:
    if measured.status is Status.TIME_LIMIT:
        return f"stopped after {options.time_limit:.0f} s"
    return measured.message or str(measured.status)


# -------------------------------------------------------------------------- tables


def tables(figures: Figures, options: Options) -> list[Table]:
    """Return the papers' tables with both figures."""
    del options
    makers = (
        ("000-1", _small),
        ("000-2", _large),
        ("001-1", _equality),
        ("003", _modules),
        ("rules", _rules),
        ("examples", _examples),
    )
    found: list[Table] = []
    for name, make in makers:
        if name in figures.tables:
            found += make(figures)
    return found


def _pair(ours: float | None, theirs: float | None) -> str:
    """Return Evermat's time, and the paper's in brackets."""
    mine = seconds_text(ours)
    return mine if theirs is None else f"{mine} ({theirs:,.4g} s)"


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below


def _ratio_text(ratio: float | None) -> str:
    if ratio is None:
        return "–"
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:,.0f}"  # noqa: PLR2004


def _both(ours: float | None, theirs: float | None) -> str:
    return f"{_ratio_text(ours)} ({_ratio_text(theirs)})"


_CLEAR = 1.25
"""Two algorithms are about equally fast if their ratio is within this factor of one."""


def contradicts(ours: float | None, theirs: float | None) -> bool:
    """Return whether one ratio means slower, and the other one faster."""
    if ours is None or theirs is None:
        return False
    return (ours > _CLEAR and theirs < 1) or (ours < 1 / _CLEAR and theirs > 1)


def _notes_on(
    row: str,
    found: Mapping[str, Record],
    paper: Mapping[str, float],
    pairs: Iterable[tuple[str, str]],
) -> Iterator[str]:
    """Yield a sentence for each ratio that contradicts the paper's."""
    for above, below in pairs:
        if above not in found or below not in found:
            continue
        ours = _ratio(found[above]["seconds"], found[below]["seconds"])
        theirs = _ratio(paper.get(above), paper.get(below))
        if contradicts(ours, theirs):
            work = " and ".join(
                count_text(found[name]["instances"]) for name in (above, below)
            )
            yield (
                f"{row}: `{above}` takes {_ratio_text(ours)} times as long as "
                f"`{below}`, and {_ratio_text(theirs)} times in the paper; they "
                f"matched {work} instances.{_reason(row, above, below)}"
            )


_LITTLE = (
    "Recursive classes of the look-alike depend on each other in groups of ten, so "
    "overdeletion ends soon and leaves little for a search to save."
)
_SHORT_TIMES = (
    "Starting again takes milliseconds at this size, as long as an update takes "
    "before it has matched anything."
)
_RELATIONS = (
    "Each of a thousand relations costs some time when starting again, however few "
    "facts are left."
)

REASONS: dict[tuple[str, str, str], str] = {
    ("UOBM-R", "dred-c", "bf-c"): _LITTLE,
    ("Reactome-R", "dred-c", "bf-c"): _LITTLE,
    ("ChemBL-R", "dred-c", "bf-c"): _LITTLE,
    ("Claros-LE", "dred-c", "remat-0"): _RELATIONS,
    ("UniProt-L", "rewrite remat", "rewrite bf"): _SHORT_TIMES,
    ("UOBM-100-U", "rewrite remat", "rewrite bf"): (
        "The clique of the look-alike has hundreds of members and not 3,930, and is a "
        "smaller part of the data."
    ),
    ("Claros-LE", "rewrite remat", "rewrite bf"): (
        "Places are related in cliques, which B/F goes through again when one of them "
        "loses a fact; they are a larger part of the data here, so that few deleted "
        "facts reach them. In the paper this happens at 10,000 facts."
    ),
    ("OpenCyc-L", "rewrite remat", "rewrite bf"): (
        "In the paper B/F asks 200 rules that never fire; here rules that read an "
        "empty relation are not asked, and explicit facts are found by their "
        "representatives."
    ),
}
"""Explanations of ratios that differ from the paper's, by row and ratio."""


def _reason(row: str, above: str, below: str) -> str:
    known = REASONS.get((row.partition(",")[0], above, below), "")
    return f" {known}" if known else ""


_SMALL_PAIRS = (("dred", "dred-c"), ("bf", "bf-c"), ("dred-c", "bf-c"))


def _small(figures: Figures) -> list[Table]:
    ways = ("dred-c", "dred", "bf-c", "bf")
    rows, ratios = [], []
    notes: list[str] = []
    for name in figures.tables["000-1"]:
        counted = figures.of("000-1", name, "counted").get("", {})
        sizes = figures.of("000-1", name, "loaded")
        found = figures.of("000-1", name, "deleted")
        paper = published.SMALL_DELETIONS[name]
        explicit, strata, plain, recursive = published.SIZES_000[name]
        size = next(iter(sizes.values()), {})
        shown = [_pair(_seconds(found, way), paper[way]) for way in ways]
        rows.append(
            (
                name,
                f"{count_text(size.get('explicit'))} ({count_text(explicit)})",
                f"{counted.get('strata', '–')} ({strata})",
                f"{_number(counted, 'nonrecursive')} ({plain:,})",
                f"{_number(counted, 'recursive')} ({recursive:,})",
                *shown,
                seconds_text(_seconds(found, "default")),
                _against_best(found, ways),
            )
        )
        ratios.append(
            (
                name,
                *(
                    _both(
                        _ratio(_seconds(found, above), _seconds(found, below)),
                        _ratio(paper[above], paper[below]),
                    )
                    for above, below in _SMALL_PAIRS
                ),
                *(_range(found, way) for way in ways),
            )
        )
        notes += _notes_on(name, found, paper, _SMALL_PAIRS)
    return [
        Table(
            "000, Table 1: deleting few facts",
            (
                *("look-alike of", "facts", "S", "Π_nr", "Π_r"),
                *ways,
                *("default settings", "default / best"),
            ),
            tuple(rows),
            (
                (
                    "In brackets the figure of the paper, which deletes 1,000 facts "
                    "of far larger data; here 100 facts are deleted, five times."
                ),
                *_ended(figures, "000-1"),
            ),
        ),
        Table(
            "000, Table 1: ratios, and best and worst of the samples",
            (
                ("look-alike of"),
                *(f"{above} / {below}" for above, below in _SMALL_PAIRS),
                *(f"{way}, best to worst" for way in ways),
            ),
            tuple(ratios),
            tuple(notes),
        ),
    ]


def _number(record: Mapping[str, Any], name: str) -> str:
    return f"{record[name]:,}" if name in record else "–"


def _seconds(found: Mapping[str, Record], way: str) -> float | None:
    return found[way]["seconds"] if way in found else None


def _against_best(found: Mapping[str, Record], ways: Iterable[str]) -> str:
    known = [found[way]["seconds"] for way in ways if way in found]
    return _ratio_text(_ratio(_seconds(found, "default"), min(known, default=None)))


def _range(found: Mapping[str, Record], way: str) -> str:
    if way not in found:
        return "–"
    return f"{seconds_text(found[way]['best'])} to {seconds_text(found[way]['worst'])}"


def _ended(figures: Figures, table: str) -> list[str]:
    return [
        f"{row}: {text}; what is missing was not measured."
        for row, text in figures.endings.items()
        if row.startswith(f"{table}, ")
    ]


UPDATES = ("dred-c", "dred", "bf-c", "bf", "again")
"""The ways of 000, Table 2, that are updates and tell what changed."""

_LARGE_PAIRS = (
    *(("dred", "dred-c"), ("bf", "bf-c"), ("dred-c", "remat-0")),
    ("remat-2", "remat-0"),
)


def _large(figures: Figures) -> list[Table]:
    ways = ("dred-c", "dred", "bf-c", "bf", "remat-0", "remat-1", "remat-2")
    rows, ratios = [], []
    notes: list[str] = []
    for name in figures.tables["000-2"]:
        found = figures.of("000-2", name, "deleted")
        paper = published.LARGE_DELETIONS[name]
        point = figures.of("000-2", name, "equilibrium").get("", {})
        percent = point.get("percent")
        share = "–" if percent is None else f"{percent:.1f} %"
        rows.append(
            (
                name,
                f"{share} ({paper['percent']:.0f} %)",
                *(_pair(_seconds(found, way), paper[way]) for way in ways),
                seconds_text(_seconds(found, "again")),
                seconds_text(_seconds(found, "default")),
                _against_best(found, UPDATES),
            )
        )
        ratios.append(
            (
                name,
                *(
                    _both(
                        _ratio(_seconds(found, above), _seconds(found, below)),
                        _ratio(paper[above], paper[below]),
                    )
                    for above, below in _LARGE_PAIRS
                ),
                *(_megabytes(found, way) for way in ("remat-0", "remat-1", "remat-2")),
            )
        )
        notes += _notes_on(name, found, paper, _LARGE_PAIRS)
    return [
        Table(
            "000, Table 2: deleting as much as takes as long as starting again",
            (
                *("look-alike of", "deleted"),
                *ways,
                *("remat as an update", "default settings", "default / best"),
            ),
            tuple(rows),
            (
                (
                    "`remat-0` counts nothing (Remat), `remat-1` nonrecursive "
                    "derivations (Remat-1C), `remat-2` both (Remat-2C): they load the "
                    "facts that are left into an empty knowledge base. As an update, "
                    "starting again also finds out what changed; with it and the first"
                    " four columns default settings are compared. The equilibrium is "
                    "found by halving the range from 0.5 to 90 % five times."
                ),
                *_ended(figures, "000-2"),
            ),
        ),
        Table(
            "000, Table 2: ratios, and memory of the facts that are left",
            (
                ("look-alike of"),
                *(f"{above} / {below}" for above, below in _LARGE_PAIRS),
                *("memory, no counters", "one", "two"),
            ),
            tuple(ratios),
            tuple(notes),
        ),
    ]


def _megabytes(found: Mapping[str, Record], way: str) -> str:
    return f"{found[way]['bytes'] / 1e6:.2f} MB" if way in found else "–"


_EQUALITY_PAIRS = (("rewrite remat", "rewrite bf"), ("axioms bf", "rewrite bf"))


def _equality(figures: Figures) -> list[Table]:
    sizes, rows = [], []
    notes: list[str] = []
    ways = published.WAYS_001
    for name, records in figures.tables["001-1"].items():
        known = name.removesuffix(" with ≈")
        explicit, _, facts, seconds, axiom_facts, axiom_seconds = published.SIZES_001[
            known
        ]
        loaded = figures.of("001-1", name, "loaded")
        rewritten = loaded.get("rewrite bf", {})
        axioms = loaded.get("axioms bf", {})
        sizes.append(
            (
                known,
                f"{count_text(rewritten.get('explicit'))} ({count_text(explicit)})",
                f"{count_text(rewritten.get('facts'))} ({count_text(facts)})",
                _pair(rewritten.get("seconds"), seconds),
                count_text(rewritten.get("instances")),
                f"{count_text(axioms.get('facts'))} ({count_text(axiom_facts)})",
                _pair(axioms.get("seconds"), axiom_seconds),
                count_text(axioms.get("instances")),
            )
        )
        deleted = [record for record in records if record["event"] == "deleted"]
        counts = sorted({record["count"] for record in deleted})
        papers = list(published.EQUALITY[known].items())
        for at, count in enumerate(counts):
            found = {r["way"]: r for r in deleted if r["count"] == count}
            # The first is 100 facts in both; the others are shares of the equilibrium.
            label, figures_there = papers[min(at, len(papers) - 1) if at else 0]
            paper = dict(zip(ways, figures_there[1::2], strict=True))
            times = {way: time for way, time in paper.items() if time is not None}
            rows.append(
                (
                    f"{known}, {count_text(count)} ({label})",
                    count_text(found.get("rewrite bf", {}).get("removed")),
                    *(_time_and_work(found, way, times.get(way)) for way in ways),
                    seconds_text(_seconds(found, "default")),
                    _against_best(found, ways),
                )
            )
            notes += _notes_on(
                f"{known}, {count_text(count)} facts", found, times, _EQUALITY_PAIRS
            )
    return [
        Table(
            "001, Table 1: materialising with equality",
            (
                *("look-alike of", "facts", "I≈", "T≈", "D≈"),
                *("I^A", "T^A", "D^A"),
            ),
            tuple(sizes),
            (
                (
                    "≈ is rewriting, A axioms; T are seconds with reading the facts, "
                    "D matched instances. Axioms are not tried for the upper bound of"
                    " UOBM, where the paper has no figures either, nor for OpenCyc."
                ),
                *_ended(figures, "001-1"),
            ),
        ),
        Table(
            "001, Table 1: deleting with equality",
            (
                ("look-alike of, facts deleted (the paper's)"),
                *("Δ|I≈|", "B/F≈", "Remat≈", "B/F^A", "Remat^A"),
                *("default settings", "default / best"),
            ),
            tuple(rows),
            (
                (
                    "Each cell has the time, the instances matched and, in brackets, "
                    "the paper's time. After 100 facts come 25, 50, 75 and 100 % of "
                    "the equilibrium, in the paper in its own steps."
                ),
                *notes,
            ),
        ),
    ]


def _time_and_work(found: Mapping[str, Record], way: str, theirs: float | None) -> str:
    if way not in found:
        return "–" if theirs is None else f"– ({theirs:,.4g} s)"
    record = found[way]
    text = f"{seconds_text(record['seconds'])}, {count_text(record['instances'])}"
    return text if theirs is None else f"{text} ({theirs:,.4g} s)"


def _modules(figures: Figures) -> list[Table]:
    rows, speeds = [], []
    notes: list[str] = []
    for name in figures.tables["003"]:
        paper = published.MODULES[name]
        counted = figures.of("003", name, "counted").get("", {})
        loaded = figures.of("003", name, "loaded")
        steps = {
            "materialise": loaded,
            "delete": figures.of("003", name, "deleted"),
            "insert": figures.of("003", name, "inserted"),
            "delete 25 %": figures.of("003", name, "large"),
        }
        own = loaded.get("off") or loaded.get("on") or {}
        symmetric = counted.get("symmetric", 0)
        rows.append(
            (
                name,
                f"{count_text(own.get('explicit'))} ({count_text(paper['explicit'])})",
                f"{count_text(own.get('facts'))} ({count_text(paper['facts'])})",
                f"{counted.get('strata', '–')} ({paper['strata']:.0f})",
                f"{counted.get('nonrecursive', '–')} ({paper['nonrecursive']:.0f})",
                f"{counted.get('recursive', '–')} ({paper['recursive']:.0f})",
                f"{counted.get('modules', 0) - symmetric} ({paper['TC']:.0f})",
                f"{symmetric} ({paper['STC']:.0f})",
            )
        )
        for step, found in steps.items():
            there = {way: paper[f"{step} {way}"] for way in ("on", "off")}
            speeds.append(
                (
                    f"{name}: {step}",
                    _pair(_seconds(found, "on"), there["on"]),
                    _pair(_seconds(found, "off"), there["off"]),
                    _both(
                        _ratio(_seconds(found, "off"), _seconds(found, "on")),
                        _ratio(there["off"], there["on"]),
                    ),
                    seconds_text(_seconds(found, "default")),
                    _against_best(found, ("on", "off")),
                )
            )
            notes += _notes_on(f"{name}: {step}", found, there, (("off", "on"),))
    return [
        Table(
            "003, Table 1: data and programs",
            ("look-alike of", "|E|", "|I|", "S", "Π_nr", "Π_r", "TC", "STC"),
            tuple(rows),
            ("In brackets the paper's.", *_ended(figures, "003")),
        ),
        Table(
            "003, Tables 1 and 2: DRed^c with modules and without",
            (
                *("look-alike of: step", "modules", "no modules"),
                *("no modules / modules", "default settings", "default / best"),
            ),
            tuple(speeds),
            (
                (
                    "100 facts are deleted and inserted, in the paper 1,000; loading "
                    "includes reading the facts."
                ),
                *notes,
            ),
        ),
    ]


def _rules(figures: Figures) -> list[Table]:
    rows = []
    ways: list[str] = []
    for name, records in figures.tables["rules"].items():
        ways = list(dict.fromkeys(r["way"] for r in records if "way" in r))
        loaded = figures.of("rules", name, "loaded")
        own: dict[str, Any] = next(iter(loaded.values()), {})
        steps = dict.fromkeys(
            (record["event"], record["count"])
            for record in records
            if record["event"] in {"removed", "added"}
        )
        for step, count in steps:
            found = {
                record["way"]: record
                for record in records
                if record["event"] == step and record["count"] == count
            }
            others = [way for way in ways if way != "default"]
            rows.append(
                (
                    f"{count} of {own.get('rules', 0):,} rules {step}",
                    *(seconds_text(_seconds(found, way)) for way in ways),
                    _against_best(found, others),
                )
            )
    return [
        Table(
            "Rules that change (the subject of 004, which has no figures)",
            ("update", *ways, "default / best"),
            tuple(rows),
            tuple(_ended(figures, "rules")),
        )
    ]


CLAIMS = {
    "000, Example 1": "DRed and B/F grow with n², DRed^c and B/F^c with n",
    "000, Example 2": "DRed and B/F grow with n², DRed^c with n",
    "003, Example 1": "rules take n³ steps, a module n²",
}


def _examples(figures: Figures) -> list[Table]:
    rows = []
    for records in figures.tables["examples"].values():
        names = dict.fromkeys((r["name"], r["way"]) for r in records)
        for name, way in names:
            times = {
                record["factor"]: record
                for record in records
                if (record["name"], record["way"]) == (name, way)
            }
            last = max(times)
            growth = _ratio(times[last]["seconds"], times[last // 2]["seconds"])
            rows.append(
                (
                    f"{name}: {way}",
                    CLAIMS[name],
                    *(seconds_text(each["loading"]) for each in times.values()),
                    *(seconds_text(each["seconds"]) for each in times.values()),
                    _ratio_text(growth),
                )
            )
    return [
        Table(
            "Worked examples",
            (
                *("example", "the paper says"),
                *("loading n", "2n", "4n", "deleting n", "2n", "4n", "4n / 2n"),
            ),
            tuple(rows),
            (
                (
                    "The examples without costs (Figure 1 and Example 3 of 000, "
                    "Section 3.1 of 001, Example 2 of 003, Table 1 of 004) are tests."
                ),
                *_ended(figures, "examples"),
            ),
        )
    ]
