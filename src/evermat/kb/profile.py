"""Cost of each rule: time, matches, facts, and the slowest join.

Each rule is applied once to all materialised facts. Materialisation finds every
instance of a rule exactly once, so the numbers of instances are those of
materialisation; times are those of a single application to all facts. The joins of a
rule are measured by running its first one, two, … patterns, in the order chosen by the
engine.

Rules that a module evaluates are not applied; only their sizes are reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from html import escape
from time import perf_counter
from typing import TYPE_CHECKING

from evermat.algebra import Column, Compute, Pattern, Views
from evermat.algebra.compile import compile_rules, variables_of
from evermat.explain.explanation import rule_place
from evermat.kb.materialisation import Materialisation
from evermat.lang.syntax import is_auxiliary
from evermat.results.result import html_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evermat.algebra import Engine, Query
    from evermat.kb.equality import EqualityMaterialisation
    from evermat.lang.syntax import Rule


@dataclass(frozen=True, slots=True)
class Join:
    """A join step of a rule.

    Attributes:
        atom: the atom to join, in the variables of the rule.
        matches: the number of matches of this atom and those before it.
        seconds: the additional time of this step.
    """

    atom: str
    matches: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.atom}: {self.matches:,} matches, {_milliseconds(self.seconds)}"


@dataclass(frozen=True, slots=True)
class RuleProfile:
    """The cost of a rule.

    Attributes:
        rule: the rule as written.
        place: its file and line, if known.
        stratum: the number of its stratum, from 1.
        seconds: the time to apply it once to all facts.
        instances: the number of its instances.
        facts: the number of distinct facts it derives.
        joins: the steps, in the order in which they are run.
        module: the module that evaluates the rule, if it is not applied.
    """

    rule: str
    place: str | None
    stratum: int
    seconds: float = 0.0
    instances: int = 0
    facts: int = 0
    joins: tuple[Join, ...] = ()
    module: str | None = None

    @property
    def duplicates(self) -> int:
        """The number of instances that derive a fact again."""
        return max(0, self.instances - self.facts)

    @property
    def slowest_join(self) -> Join | None:
        """The slowest step."""
        return max(self.joins, key=lambda join: join.seconds, default=None)


@dataclass(frozen=True, slots=True)
class Profile:
    """The cost of the rules of a knowledge base; printed as a table."""

    rules: tuple[RuleProfile, ...]

    COLUMNS = ("rule", "time", "instances", "facts", "duplicates", "slowest join")

    def rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """Return the rows of the table, the slowest rule first."""
        ordered = sorted(self.rules, key=lambda each: -each.seconds)
        return [
            (each.rule, each.module, "", f"{each.facts:,}", "", "")
            if each.module is not None
            else (
                each.rule,
                _milliseconds(each.seconds),
                f"{each.instances:,}",
                f"{each.facts:,}",
                f"{each.duplicates:,}",
                "" if each.slowest_join is None else str(each.slowest_join),
            )
            for each in ordered
        ]

    def __str__(self) -> str:
        rows = [self.COLUMNS, *self.rows()]
        widths = [max(len(row[at]) for row in rows) for at in range(len(self.COLUMNS))]
        return "\n".join(
            "  ".join(
                cell.ljust(width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        )

    def _repr_html_(self) -> str:
        """A plot and the table as HTML, for notebooks."""
        return self.to_svg() + html_table("Profile", self.COLUMNS, self.rows())

    def to_svg(self) -> str:
        """Return a plot of the times of the rules, the slowest first."""
        applied = [each for each in self.rules if each.module is None]
        applied.sort(key=lambda each: -each.seconds)
        longest = max((each.seconds for each in applied), default=0.0) or 1.0
        height = _ROW * len(applied)
        size = f'viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}"'
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="profile">',
            "<title>Time to apply each rule once to all facts</title>",
            f"<style>{_STYLE}</style>",
        ]
        for at, each in enumerate(applied):
            top, width = _ROW * at, each.seconds / longest * (_WIDTH - _LABEL)
            parts.append(
                f"<g><title>{escape(each.rule)}</title>"
                f'<text x="0" y="{top + 13}">{escape(_shortened(each.rule))}</text>'
                f'<rect x="0" y="{top + 19}" width="{width:.1f}" height="9" rx="2"/>'
                f'<text x="{width + 6:.1f}" y="{top + 28}">'
                f"{_milliseconds(each.seconds)}</text></g>"
            )
        return "\n".join([*parts, "</svg>"])


_WIDTH, _ROW, _LABEL = 860, 38, 90
_STYLE = (
    ".profile text{font:12px ui-monospace,monospace;fill:currentColor}"
    ".profile rect{fill:#4f46e5}"
)
_LONGEST = 115
"""Characters of a rule in a plot."""


def _shortened(rule: str) -> str:
    return rule if len(rule) <= _LONGEST else rule[: _LONGEST - 1] + "…"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


def profile(materialisation: Materialisation | EqualityMaterialisation) -> Profile:
    """Apply every rule once, and measure it."""
    modules = (
        materialisation.modules if isinstance(materialisation, Materialisation) else ()
    )
    claimed = {rule: module.name for module in modules for rule in module.rules}
    found: dict[str, RuleProfile] = {}
    for stratum in materialisation.strata:
        for rule in stratum.rules.rules:
            text = str(rule.written)
            known = found.get(text)
            mine = RuleProfile(text, rule_place(rule), stratum.index + 1)
            if rule in claimed:
                size = _size(materialisation, rule.head.predicate)
                found[text] = replace(mine, module=claimed[rule], facts=size)
            else:
                found[text] = _together(known, _measured(materialisation, rule, mine))
    return Profile(tuple(found.values()))


def _size(
    materialisation: Materialisation | EqualityMaterialisation, predicate: str
) -> int:
    if isinstance(materialisation, Materialisation):
        return materialisation.reading.size(predicate)
    return int(materialisation.engine.statistics().get(predicate, {}).get("facts", 0))


def _together(known: RuleProfile | None, more: RuleProfile) -> RuleProfile:
    """Combine a rule with the auxiliary rules of its negations."""
    if known is None:
        return more
    return replace(
        more,
        seconds=known.seconds + more.seconds,
        instances=known.instances + more.instances,
        facts=known.facts + more.facts,
        joins=known.joins + more.joins,
    )


def _measured(
    materialisation: Materialisation | EqualityMaterialisation,
    rule: Rule,
    mine: RuleProfile,
) -> RuleProfile:
    engine = materialisation.engine
    (query,) = compile_rules((rule,), lambda _rule, _atom: False).full.queries
    names = variables_of(rule)
    if not isinstance(materialisation, Materialisation):
        views = Views(positive=engine.materialised, negative=engine.materialised)
        return _run(engine, query, views, names, mine)
    patterns = (*query.positive, *query.negative)
    with materialisation.reading.facts(patterns) as facts:
        views = Views(positive=facts, negative=facts)
        return _run(engine, query, views, names, mine)


def _run(
    engine: Engine, query: Query, views: Views, names: Sequence[str], mine: RuleProfile
) -> RuleProfile:
    seconds, facts = _timed(engine, query, views)
    _, instances = _timed(engine, _every_match(query), views)
    joins, before = [], 0.0
    patterns = _in_order(engine, query, views)
    for count, pattern in enumerate(patterns, 1):
        first = replace(
            query, positive=tuple(patterns[:count]), negative=(), computations=()
        )
        spent, matches = _timed(engine, _every_match(first), views)
        joins.append(Join(_text(pattern, names), matches, max(0.0, spent - before)))
        before = spent
    if is_auxiliary(query.head.relation):
        instances = facts = 0  # of no predicate visible to users
    return replace(
        mine, seconds=seconds, instances=instances, facts=facts, joins=tuple(joins)
    )


def _timed(engine: Engine, query: Query, views: Views) -> tuple[float, int]:
    """Measure the seconds and distinct rows of a query whose indexes exist."""
    spent, rows = [], 0
    for _ in range(2):
        start = perf_counter()
        rows = engine.answer(query, views).num_rows
        spent.append(perf_counter() - start)
    return min(spent), rows


def _in_order(engine: Engine, query: Query, views: Views) -> list[Pattern]:
    """Return the positive patterns in the order in which the engine joins them."""
    waiting = list(query.positive)
    ordered = []
    for line in engine.explain(query, views):
        for pattern in waiting:
            if line.split(" ", 1)[-1].startswith(f"{pattern.relation}("):
                ordered.append(pattern)
                waiting.remove(pattern)
                break
    return [*ordered, *waiting]


def _every_match(query: Query) -> Query:
    """Return a query for all matches: its rows contain all bound columns."""
    bound = {
        each.index
        for pattern in query.positive
        for each in pattern.operands
        if isinstance(each, Column)
    }
    bound |= {
        each.target.index for each in query.computations if isinstance(each, Compute)
    }
    if not bound:
        return query
    head = Pattern("~profile", tuple(Column(at) for at in sorted(bound)))
    return replace(query, head=head)


def _text(pattern: Pattern, names: Sequence[str]) -> str:
    """Format a pattern in the variables of its rule."""
    operands = [
        _variable(names[each.index]) if isinstance(each, Column) else str(each)
        for each in pattern.operands
    ]
    return f"{pattern.relation}({', '.join(operands)})"


def _variable(name: str) -> str:
    """Format a variable as written; those for `_` have numbers."""
    return "_" if re.fullmatch(r"_\d+", name) else f"?{name}"
