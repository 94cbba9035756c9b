"""Programs of others with the answers that their own systems give."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.io.nemo_tables import read_cell
from evermat.values import Constant, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROJECT = Path(__file__).resolve().parent.parent.parent
DATA = (PROJECT / os.environ.get("EVERMAT_TEST_DATA", "../shared/data")).resolve()

Row = tuple[Constant, ...]
LARGE = 10_000
"""Programs with more facts are too slow for the reference engine."""
_DELIMITERS = {".csv": ",", ".tsv": "\t", ".dsv": ";"}


@dataclass(frozen=True)
class Case:
    """A program, and the file of expected rows for each of its outputs."""

    name: str
    program: Path
    expected: Mapping[str, Path]
    is_large: bool = False


def souffle_cases() -> list[Case]:
    return [
        Case(
            entry["test"],
            program := DATA / "souffle-programs" / entry["program"],
            {name: program.parent / f"{name}.csv" for name in entry["outputs"]},
            is_large=int(entry["facts"]) > LARGE,
        )
        for entry in _index("souffle-programs")
    ]


def nemo_cases() -> list[Case]:
    folder = DATA / "nemo-programs"
    return [
        Case(
            entry["test"],
            folder / entry["program"],
            {name: folder / entry["expected"] / name for name in entry["outputs"]},
        )
        for entry in _index("nemo-programs")
    ]


def _index(folder: str) -> list[dict[str, str]]:
    path = DATA / folder / "index.json"
    if not path.exists():
        return []
    entries: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return entries


def souffle_rows(path: Path) -> set[tuple[str, ...]]:
    """Rows as Soufflé prints them: tabs between texts, `()` for no columns."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {() if line == "()" else tuple(line.split("\t")) for line in lines}


def nemo_rows(path: Path) -> set[Row]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.reader(stream, delimiter=_DELIMITERS[path.suffix])
        return {tuple(map(read_cell, row)) for row in rows if row}


def without_labels(facts: Mapping[str, Iterable[Row]]) -> Counter[tuple[str, Row]]:
    """The facts with blank nodes renamed after the facts that they occur in.

    Two sets of facts are the same up to the labels of blank nodes if they are equal
    after this, as long as no two blank nodes are left with the same name. Colours are
    refined until they no longer tell more nodes apart.
    """
    rows = [(name, row) for name, table in facts.items() for row in table]
    colours: dict[Constant, str] = {
        term: "" for _, row in rows for term in row if term.kind is Kind.BLANK
    }
    known = 0
    while len(set(colours.values())) > known:
        known = len(set(colours.values()))
        around: dict[Constant, list[str]] = {term: [] for term in colours}
        for name, row in rows:
            shape = [colours.get(term, str(term)) for term in row]
            for place, term in enumerate(row):
                if term in around:
                    around[term].append(f"{name} {place} {shape}")
        numbers = {
            text: str(n) for n, text in enumerate(sorted(map(_key, around.values())))
        }
        colours = {term: numbers[_key(facts_of)] for term, facts_of in around.items()}
    return Counter(
        (name, tuple(_coloured(term, colours) for term in row)) for name, row in rows
    )


def _key(texts: list[str]) -> str:
    return "\n".join(sorted(texts))


def _coloured(term: Constant, colours: Mapping[Constant, str]) -> Constant:
    return Constant(Kind.BLANK, colours[term]) if term in colours else term
