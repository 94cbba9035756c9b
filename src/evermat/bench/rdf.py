"""RDF: parsing, OWL 2 RL, updates and SPARQL, beside other libraries in one run.

The data are the LUBM data of `EVERMAT_TEST_DATA`, repeated for more universities by
renaming the one that is there, and Brick with its buildings. All times are seconds of
processor time, of all cores together: the peers run in this process as well. Reading
files is part of every job.
"""

from __future__ import annotations

import gzip
import os
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any

import pyoxigraph

from evermat.api import KnowledgeBase
from evermat.bench.report import Table, count_text, ratio_text, seconds_text
from evermat.columns import constants
from evermat.rdf import read_ontology, read_rdf, write_rdf
from evermat.rdf.ontology import IgnoredAxiomsWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from evermat.bench.processes import Options

NAMES = ("parse", "lubm", "brick", "updates", "queries")
UNIVERSITIES = 10
"""At scale 1."""

_AXIOM = "univ-bench.owl#Person>] :- [?x, a, "
"""A part of the rule of an axiom that many triples follow from."""

Row = tuple[str, ...]


@dataclass(slots=True)
class Figures:
    """What was measured: for each workload the seconds of each system.

    Attributes:
        triples: the triples at the end of each job.
    """

    seconds: dict[str, dict[str, float]] = field(default_factory=dict)
    triples: dict[str, dict[str, int]] = field(default_factory=dict)

    def note(self, job: str, system: str, seconds: float, triples: int = 0) -> None:
        """Note a figure."""
        self.seconds.setdefault(job, {})[system] = seconds
        if triples:
            self.triples.setdefault(job, {})[system] = triples


def run(options: Options) -> Figures:
    """Measure.

    Raises:
        ValueError: there are no data.
    """
    data = Path(os.environ.get("EVERMAT_TEST_DATA", "../shared/data"))
    if not (data / "lubm").exists():
        message = f"there are no data in `{data}`; set EVERMAT_TEST_DATA"
        raise ValueError(message)
    figures = Figures()
    chosen = options.only or NAMES
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredAxiomsWarning)
        suite = _Suite(data, Path(folder), options, figures)
        for name in chosen:
            getattr(suite, name)()
    return figures


class _Suite:
    """The workloads over the same files."""

    def __init__(
        self, data: Path, folder: Path, options: Options, figures: Figures
    ) -> None:
        self._data = data
        self._folder = folder
        self._options = options
        self._figures = figures
        self._ontology = folder / "ontology.ttl"
        self._facts = folder / "facts.nt"
        _rewritten(data / "lubm" / "univ-bench.owl", self._ontology)
        one = gzip.decompress((data / "lubm" / "lubm-1.nt.gz").read_bytes())
        count = max(1, round(UNIVERSITIES * options.scale))
        with self._facts.open("wb") as file:
            for number in range(count):
                # Other universities are named too; those have numbers from 1.
                name = b"University0.edu", b"University%d.edu" % (number * 10_000)
                file.write(one.replace(*name))

    def parse(self) -> None:
        """Parse N-Triples and encode them."""
        lines = sum(1 for _ in self._facts.open("rb"))

        def ours() -> int:
            kb = KnowledgeBase(equality="off")
            kb.load(rdf=self._facts)
            return kb.count("triple")

        def oxigraph() -> int:
            store = pyoxigraph.Store()
            store.bulk_load(path=str(self._facts))
            return len(store)

        jobs: dict[str, Callable[[], int]] = {"evermat": ours}
        if self._options.peers:
            jobs["pyoxigraph"] = oxigraph
        self._measure(f"parse and encode {count_text(lines)} lines", jobs)

    def lubm(self) -> None:
        """OWL 2 RL on universities."""
        self._owl("LUBM look-alike", [self._ontology, self._facts])

    def brick(self) -> None:
        """OWL 2 RL on Brick and the largest buildings."""
        brick = self._folder / "brick.ttl"
        _rewritten(self._data / "brick" / "Brick-1.1.ttl.gz", brick)
        files = [brick]
        buildings = sorted((self._data / "brick" / "buildings").iterdir())
        for building in buildings[
            : max(1, round(len(buildings) * self._options.scale))
        ]:
            files.append(self._folder / building.name.removesuffix(".gz"))
            _rewritten(building, files[-1])
        self._owl("Brick 1.1 and buildings", files)

    def _owl(self, name: str, files: list[Path]) -> None:
        jobs: dict[str, Callable[[], int]] = {
            "evermat": lambda: _compiled(files).count("triple"),
            "evermat, rule set": lambda: _rule_set(files).count("triple"),
        }
        if self._options.peers:
            jobs["reasonable"] = lambda: len(_reasonable(files))
        self._measure(name, jobs)

    def updates(self) -> None:
        """Delete and insert triples and an axiom of universities."""
        kb = _compiled([self._ontology, self._facts])
        rows = [*zip(*map(constants, read_rdf(self._facts).columns), strict=True)]
        step = max(1, len(rows) // 1000)
        many = rows[::step][:1000]
        axiom = next(rule for rule in kb.rules if _AXIOM in str(rule))
        rebuilt = None
        if self._options.peers:
            with _timed() as spent:
                _reasonable([self._ontology, self._facts])
            rebuilt = spent[0]
        changes: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
            (name, {"delete": {"triple": rows}}, {"insert": {"triple": rows}})
            for name, rows in (
                ("delete a triple", many[:1]),
                ("delete 1,000 triples", many),
            )
        ]
        changes.append(
            ("delete an axiom", {"remove_rules": axiom}, {"add_rules": axiom})
        )
        for name, there, back in changes:
            times = []
            for _ in range(self._options.repeat):
                with _timed() as spent:
                    kb.update(**there)
                times.append(spent[0])
                kb.update(**back)
            self._figures.note(name, "evermat", min(times))
            if rebuilt is not None:
                self._figures.note(name, "reasonable, from scratch", rebuilt)

    def queries(self) -> None:
        """The queries of LUBM over what is materialised, and again after an update."""
        kb = _compiled([self._ontology, self._facts])
        store = pyoxigraph.Store()
        if self._options.peers:
            written = self._folder / "closed.nt"
            write_rdf(kb.facts("triple").to_terms(), written)
            store.bulk_load(path=str(written))
            store.optimize()
        some = kb.sparql("SELECT ?s ?p ?o { ?s ?p ?o } LIMIT 1000")
        for path in sorted((self._data / "lubm" / "queries").glob("*.rq")):
            text = path.read_text(encoding="utf-8")
            name = f"query {int(path.stem[1:])}"
            jobs = {"evermat": _asked(kb, text)}
            if self._options.peers:
                jobs["pyoxigraph"] = _asked_of_oxigraph(store, text)
            self._measure(name, jobs)
            kb.delete("triple", some)
            self._measure(name, {"evermat, after an update": _asked(kb, text)})
            kb.insert("triple", some)

    def _measure(self, job: str, systems: dict[str, Callable[[], int]]) -> None:
        for system, work in systems.items():
            times = []
            for _ in range(self._options.repeat):
                with _timed() as spent:
                    found = work()
                times.append(spent[0])
            self._figures.note(job, system, min(times), found)


@contextmanager
def _timed() -> Iterator[list[float]]:
    """The processor time of a block, in a list that has it afterwards."""
    spent: list[float] = []
    start = process_time()
    yield spent
    spent.append(process_time() - start)


def _rewritten(path: Path, target: Path) -> None:
    """An RDF file as N-Triples, which are Turtle as well."""
    lines = target.with_suffix(".nt")
    write_rdf(read_rdf(path, base="http://example.org/base"), lines)
    if lines != target:
        lines.replace(target)


def _compiled(files: Sequence[Path]) -> KnowledgeBase:
    kb = KnowledgeBase(read_ontology(files[0]), contradictions="ignore")
    kb.load(rdf=list(files))
    return kb


def _rule_set(files: Sequence[Path]) -> KnowledgeBase:
    kb = KnowledgeBase("@include owl2rl .", contradictions="ignore")
    kb.load(rdf=list(files))
    return kb


def _reasonable(files: Sequence[Path]) -> Sequence[Any]:
    from reasonable import PyReasoner  # noqa: PLC0415  a peer, if it is there

    reasoner = PyReasoner()
    for file in files:
        turtle = file.with_suffix(".ttl")
        if not turtle.exists():
            turtle.symlink_to(file)
        reasoner.load_file(str(turtle))
    found: Sequence[Any] = reasoner.reason()
    return found


def _asked(kb: KnowledgeBase, text: str) -> Callable[[], int]:
    def work() -> int:
        found = kb.sparql(text)
        assert not isinstance(found, bool | list)  # noqa: S101  SELECT
        return len(found.to_arrow())

    return work


def _asked_of_oxigraph(store: pyoxigraph.Store, text: str) -> Callable[[], int]:
    def work() -> int:
        found: Any = store.query(text)
        return sum(1 for _ in found)

    return work


# ------------------------------------------------------------------------------ tables


_NOTE = (
    "Seconds of all cores together; the least of several. `reasonable` returns its "
    "triples as objects of Python, which is part of its time; a query in SPARQL that "
    "was asked before is not parsed again."
)


def tables(figures: Figures, options: Options) -> list[Table]:
    """Each job with the seconds of each system, and in units of ours."""
    del options
    rows: list[Row] = []
    for job, systems in figures.seconds.items():
        unit = systems.get("evermat")
        for system, seconds in systems.items():
            triples = figures.triples.get(job, {}).get(system)
            rows.append(
                (
                    job,
                    system,
                    seconds_text(seconds),
                    ratio_text(seconds, unit),
                    count_text(triples),
                )
            )
    return [
        Table(
            title="RDF",
            header=("job", "system", "processor time", "in units of ours", "rows"),
            rows=tuple(rows),
            notes=(_NOTE,),
        )
    ]
