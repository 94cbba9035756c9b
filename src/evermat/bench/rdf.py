"""RDF: parsing, OWL 2 RL, updates and SPARQL, compared with other libraries.

The data are the LUBM data of `EVERMAT_TEST_DATA`, repeated for more universities by
renaming the one that exists, Brick with its buildings, and the Gene Ontology, whose
terms are individuals here, related by transitive properties. All times are seconds of
processor time, of all cores together: the peers run in this process as well. Reading
files, in N-Triples, is part of every job.
"""

from __future__ import annotations

import gzip
import os
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyoxigraph

from evermat.api import KnowledgeBase
from evermat.bench.rdf_peers import about_things, by_owlrl, by_reasonable, only_in
from evermat.bench.report import (
    Table,
    count_text,
    ratio_text,
    seconds_text,
    verdict,
)
from evermat.columns import constants
from evermat.rdf import read_ontology, read_rdf, write_rdf
from evermat.rdf.namespaces import OWL, RDFS
from evermat.rdf.ontology import IgnoredAxiomsWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evermat.bench.processes import Options

NAMES = ("parse", "lubm", "brick", "go", "small", "updates", "queries")
UNIVERSITIES = 10
"""At scale 1."""

SMALL = 50_000
"""Triples of a university, for a peer that takes long."""

ENOUGH = 15.0
"""Seconds from which a measurement is not repeated."""

LEAST, MOST = 0.2, 30
"""Short jobs are repeated for this many seconds, or this many times."""

SMALL_JOB = "LUBM, half a university"

_GENE_ONTOLOGY = """
@prefix : <http://go.example.org/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:below a owl:ObjectProperty, owl:TransitiveProperty .
"""

_AXIOM = "univ-bench.owl#Person>] :- [?x, a, "
"""A part of the rule of an axiom that many triples depend on."""

Row = tuple[str, ...]
Seconds = dict[str, dict[str, float]]
"""Seconds of each job and each system."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Numbers of triples about individuals: common ones, and those of one system."""

    job: str
    system: str
    peer: str
    both: int
    only_ours: int
    only_theirs: int


@dataclass(slots=True)
class Figures:
    """The figures: for each workload the seconds of each system.

    Attributes:
        triples: the triples at the end of each job.
        differences: the triples about which systems disagree.
    """

    seconds: Seconds = field(default_factory=dict)
    triples: dict[str, dict[str, int]] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    def note(self, job: str, system: str, seconds: float, triples: int = 0) -> None:
        """Record a figure."""
        self.seconds.setdefault(job, {})[system] = seconds
        if triples:
            self.triples.setdefault(job, {})[system] = triples


def run(options: Options) -> Figures:
    """Run all selected workloads.

    Raises:
        ValueError: the data are missing.
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
    """The workloads on the same files."""

    def __init__(
        self, data: Path, folder: Path, options: Options, figures: Figures
    ) -> None:
        self._data = data
        self._folder = folder
        self._options = options
        self._figures = figures
        self._ontology = folder / "ontology.ttl"
        self._facts = folder / "facts.nt"
        self._small = max(1500, round(SMALL * min(options.scale, 1)))
        _rewritten(data / "lubm" / "univ-bench.owl", self._ontology)
        one = gzip.decompress((data / "lubm" / "lubm-1.nt.gz").read_bytes())
        count = max(1, round(UNIVERSITIES * options.scale))
        with self._facts.open("wb") as file:
            for number in range(count):
                # Other universities are mentioned too; their numbers start at 1.
                name = b"University0.edu", b"University%d.edu" % (number * 10_000)
                file.write(one.replace(*name))

    def parse(self) -> None:
        """Parse N-Triples and encode them."""
        with self._facts.open("rb") as file:
            lines = sum(1 for _ in file)

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
        brick = self._folder / "brick.nt"
        _rewritten(self._data / "brick" / "Brick-1.1.ttl.gz", brick)
        files = [brick]
        buildings = sorted((self._data / "brick" / "buildings").iterdir())
        for building in buildings[
            : max(1, round(len(buildings) * self._options.scale))
        ]:
            name = building.name.removesuffix(".ttl.gz")
            files.append(self._folder / f"{name}.nt")
            _rewritten(building, files[-1])
            # Some buildings bring axioms, such as which properties are inverse.
            lines = files[-1].read_text(encoding="utf-8").splitlines(keepends=True)
            with brick.open("a", encoding="utf-8") as file:
                file.writelines(line for line in lines if OWL in line or RDFS in line)
        self._owl("Brick 1.1 and buildings", files)

    def go(self) -> None:
        """OWL 2 RL on the terms of the Gene Ontology and what they are part of."""
        ontology, facts = self._folder / "go.ttl", self._folder / "terms.nt"
        edges = sorted(
            (self._data / "go").glob("*-edges.tsv.gz"),
            key=lambda path: path.stat().st_size,
        )
        relations: set[str] = set()
        with facts.open("w", encoding="utf-8") as file:
            for path in edges[: max(1, round(len(edges) * self._options.scale))]:
                for line in gzip.decompress(path.read_bytes()).decode().splitlines():
                    child, parent, relation = line.split("\t")
                    relations.add(relation.replace(" ", "_"))
                    names = child, relation.replace(" ", "_"), parent
                    file.write(" ".join(map(_go_name, names)) + " .\n")
        axioms = (
            f":{name} rdfs:subPropertyOf :below .\n" for name in sorted(relations)
        )
        ontology.write_text(_GENE_ONTOLOGY + "".join(axioms), encoding="utf-8")
        _rewritten(ontology, ontology)
        self._owl("Gene Ontology", [ontology, facts])

    def small(self) -> None:
        """OWL 2 RL on a part of a university, which the slowest peer can process."""
        part = self._folder / "part.nt"
        with self._facts.open("rb") as file:
            part.write_bytes(b"".join(islice(file, self._small)))
        self._owl(
            SMALL_JOB,
            [self._ontology, part],
            {"reasonable": by_reasonable, "owlrl": by_owlrl},
        )

    def _owl(
        self,
        name: str,
        files: list[Path],
        peers: Mapping[str, Callable[[list[Path]], Sequence[Any]]] | None = None,
    ) -> None:
        ours = {"evermat": _compiled, "evermat, rule set": _rule_set}
        theirs = {"reasonable": by_reasonable} if peers is None else peers
        if not self._options.peers:
            theirs = {}
        kept: dict[str, Any] = {}

        def job(system: str, work: Callable[[list[Path]], Any]) -> Callable[[], int]:
            def run() -> int:
                found = kept[system] = work(files)
                return found.count("triple") if system in ours else len(found)

            return run

        for system, work in (*ours.items(), *theirs.items()):
            self._measure(name, {system: job(system, work)})
            kept[system] = about_things(kept[system])
        for one, other in product(ours, [*theirs, *ours]):
            if other not in {one, "evermat"}:
                alone = only_in(kept[one], kept[other]), only_in(kept[other], kept[one])
                both = len(kept[one]) - alone[0]
                difference = Difference(name, one, other, both, *alone)
                self._figures.differences.append(difference)

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
                by_reasonable([self._ontology, self._facts])
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
        """Run the queries of LUBM on materialised facts, also after an update."""
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
            times: list[float] = []
            most = self._options.repeat
            while len(times) < most or (sum(times) < LEAST and len(times) < MOST):
                with _timed() as spent:
                    found = work()
                times.append(spent[0])
                if sum(times) > ENOUGH:
                    break
            self._figures.note(job, system, min(times), found)


@contextmanager
def _timed() -> Iterator[list[float]]:
    """Measure the processor time of a block; the list contains it afterwards."""
    spent: list[float] = []
    start = process_time()
    yield spent
    spent.append(process_time() - start)


def _rewritten(path: Path, target: Path) -> None:
    """Rewrite an RDF file as N-Triples, which are Turtle as well."""
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


def _go_name(name: str) -> str:
    return f"<http://go.example.org/{quote(name)}>"


def _asked(kb: KnowledgeBase, text: str) -> Callable[[], int]:
    def work() -> int:
        found = kb.sparql(text)
        assert not isinstance(found, bool | list)  # noqa: S101  SELECT
        return len(found.to_arrow())

    return work


def _asked_of_oxigraph(store: pyoxigraph.Store, text: str) -> Callable[[], int]:
    def work() -> int:
        found: Any = store.query(text)
        return len([tuple(row) for row in found])

    return work


# ------------------------------------------------------------------------------ tables


_NOTE = (
    "Seconds of all cores together; the least of several. `reasonable` returns its "
    "triples as objects of Python, which is part of its time, and `owlrl` works on "
    "those of rdflib. A query in SPARQL that was asked before is neither parsed nor "
    "planned again; its answers are an Arrow table here and tuples of terms there."
)


_COMPARED = (
    "Distinct triples about things with IRIs: tautologies are left out, and what is "
    "said of the vocabulary, of classes and properties, and of blank nodes."
)


def tables(figures: Figures, options: Options) -> list[Table]:
    """Return the figures, and the goals."""
    del options
    found = [_seconds(figures)]
    if figures.differences:
        found.append(_agreement(figures.differences))
    return [*found, _goals(figures)]


def _seconds(figures: Figures) -> Table:
    """Return each job with the seconds of each system, and ratios to Evermat's."""
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
    return Table(
        title="RDF",
        header=("job", "system", "processor time", "in units of ours", "rows"),
        rows=tuple(rows),
        notes=(_NOTE,),
    )


def _agreement(differences: Sequence[Difference]) -> Table:
    return Table(
        title="RDF: the same triples",
        header=("job", "system", "beside", "in both", "only one", "only the other"),
        rows=tuple(
            (
                each.job,
                each.system,
                each.peer,
                count_text(each.both),
                str(each.only_ours),
                str(each.only_theirs),
            )
            for each in differences
        ),
        notes=(_COMPARED,),
    )


# ------------------------------------------------------------------------------- goals


def _goals(figures: Figures) -> Table:
    """Return the goals of the jobs that were run, with the figures."""
    seconds = figures.seconds
    rows = [
        *_parsing_goals(figures),
        *_reasoning_goals(seconds),
        *_query_goals(
            [each for job, each in seconds.items() if job.startswith("query")]
        ),
    ]
    return Table("RDF: goals", ("goal", "measured", "limit", "reached"), tuple(rows))


def _at_least(what: str, ratio: float, least: float) -> Row:
    reached = "yes" if ratio >= least else "no"
    return what, ratio_text(ratio, 1.0), f"≥ {least:g}×", reached


def _at_most(what: str, ratio: float, most: float) -> Row:
    return what, ratio_text(ratio, 1.0), f"≤ {most:g}×", verdict(ratio, most)


def _parsing_goals(figures: Figures) -> Iterator[Row]:
    for job, systems in figures.seconds.items():
        if job.startswith("parse"):
            speed = figures.triples[job]["evermat"] / systems["evermat"]
            reached = "yes" if speed >= PARSED else "no"
            what = "triples parsed and encoded in a second"
            yield what, count_text(speed), f"≥ {count_text(PARSED)}", reached


def _reasoning_goals(seconds: Seconds) -> Iterator[Row]:
    for job, peer, least in TIMES_FASTER:
        systems = seconds.get(job, {})
        if peer in systems:
            ratio = systems[peer] / systems["evermat"]
            yield _at_least(f"{job}: {peer} in units of ours", ratio, least)
    for job, systems in seconds.items():
        rule_set = systems.get("evermat, rule set")
        if rule_set is not None:
            what = f"{job}: the rule set in units of the compiled form"
            yield _at_most(what, rule_set / systems["evermat"], MOST_OF_RULE_SET)


def _query_goals(queries: Sequence[Mapping[str, float]]) -> Iterator[Row]:
    if not queries or "pyoxigraph" not in queries[0]:
        return
    ratios = [each["evermat"] / each["pyoxigraph"] for each in queries]
    quick = sum(ratio <= 1 for ratio in ratios)
    what = f"each query in units of pyoxigraph ({quick} of {len(queries)} within it)"
    yield _at_most(what, max(ratios), 1)
    ours, theirs, after = (sum(each[name] for each in queries) for name in _ASKED)
    yield _at_most("all queries in units of pyoxigraph", ours / theirs, 0.5)
    yield _at_most("all queries after an update, in units of before", after / ours, 1.2)


_ASKED = ("evermat", "pyoxigraph", "evermat, after an update")

PARSED = 1e6
"""Triples per second."""

MOST_OF_RULE_SET = 5

TIMES_FASTER = (
    ("LUBM look-alike", "reasonable", 20),
    ("Brick 1.1 and buildings", "reasonable", 20),
    ("Gene Ontology", "reasonable", 20),
    (SMALL_JOB, "owlrl", 500),
    ("delete a triple", "reasonable, from scratch", 500),
    ("delete 1,000 triples", "reasonable, from scratch", 200),
    ("delete an axiom", "reasonable, from scratch", 50),
)
"""Jobs, peers, and the required speed-up."""
