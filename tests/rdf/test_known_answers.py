"""Real ontologies and published cases, with the answers that are known of them."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from evermat import KnowledgeBase
from evermat.algebra.equality import UnequalValuesError
from evermat.columns import constants
from evermat.lang import parse_program
from evermat.rdf import read_rdf
from evermat.rdf.namespaces import OWL
from evermat.rdf.ontology import read_ontology
from evermat.values import Constant, Kind
from rdf.rdfs_rules import RHO_DF

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings(
    "ignore::evermat.rdf.ontology.IgnoredAxiomsWarning"
)

BASE = "http://example.org/base"
SPARQL_PREFIX = re.compile(r"PREFIX\s+(\w*:)\s*(<[^>]*>)")


def test_sizes_of_closures_of_ontologies(shared_data: Path) -> None:
    folder = shared_data / "ontologies"
    for entry in json.loads((folder / "counts.json").read_text()):
        name = entry["file"]
        if not (folder / name).exists():
            assert name == "the three qudt files together"
            files = sorted(folder.glob("qudt-*.ttl.gz"))
        else:
            files = [folder / name]
        kb = KnowledgeBase(RHO_DF, equality="off")
        kb.load(rdf=files, base=BASE)
        assert _size(kb) == entry["rho_df"], name


def _size(kb: KnowledgeBase) -> int:
    """How many triples there are without those about literals."""
    subjects = kb.facts("triple").to_terms().column(0)
    names = pa.array([Kind.IRI, Kind.BLANK], pa.uint8())
    found = pc.is_in(pc.struct_field(subjects, [0]), value_set=names)
    return int(pc.sum(found).as_py())


def test_answers_to_the_queries_of_lubm(shared_data: Path) -> None:
    folder = shared_data / "lubm"
    ontology = read_ontology(folder / "univ-bench.owl")
    queries = {path.stem: path.read_text() for path in folder.glob("queries/*.rq")}
    assert len(queries) == 14
    prefixes = dict(SPARQL_PREFIX.findall("\n".join(queries.values())))
    declared = [f"@prefix {name} {iri} ." for name, iri in prefixes.items()]
    kb = KnowledgeBase([*ontology.rules, parse_program("\n".join(declared))])
    kb.load(rdf=[folder / "univ-bench.owl", folder / "lubm-1.nt.gz"], base=BASE)
    for name, text in sorted(queries.items()):
        expected = (folder / "answers" / f"{name}.tsv.gz").read_bytes()
        header, *rows = gzip.decompress(expected).decode().splitlines()
        found = kb.query(_conjunction(text))
        order = [found.columns.index(each[1:]) for each in header.split("\t")]
        lines = {"\t".join(str(row[at]) for at in order) for row in found.constants()}
        assert lines == set(rows), name


def _conjunction(sparql: str) -> str:
    """A basic graph pattern in our language."""
    inside = sparql[sparql.index("{") + 1 : sparql.rindex("}")]
    atoms = []
    for statement in re.split(r"\s\.\s", inside + " "):
        subject, _, rest = statement.strip().partition(" ")
        pairs = [pair.split() for pair in rest.split(";") if pair.strip()]
        atoms += [f"[{subject}, {name}, {found}]" for name, found in pairs]
    return ", ".join(atoms)


def _cases(shared_data: Path) -> Iterator[tuple[dict[str, Any], list[Path]]]:
    folder = shared_data / "owl2-rl-cases"
    for case in json.loads((folder / "cases.json").read_text()):
        if "premise" in case["files"]:
            names = [case["files"]["premise"], *case.get("imports", {}).values()]
            yield case, [folder / case["folder"] / name for name in names]


def _compiled(case: dict[str, Any], files: list[Path]) -> KnowledgeBase:
    catalogue = {
        iri: files[0].parent / name for iri, name in case.get("imports", {}).items()
    }
    ontology = read_ontology(files[0], catalogue=catalogue, base=BASE)
    return KnowledgeBase(ontology, engine="reference", contradictions="ignore")


def _rule_set(case: dict[str, Any], files: list[Path]) -> KnowledgeBase:
    del case, files
    return KnowledgeBase("@include owl2rl .", contradictions="ignore")


@pytest.mark.parametrize(
    ("made", "entailed", "beyond"), [(_compiled, 5, 1), (_rule_set, 12, 0)]
)
def test_cases_of_owl_2_rl(
    shared_data: Path,
    made: Callable[[dict[str, Any], list[Path]], KnowledgeBase],
    entailed: int,
    beyond: int,
) -> None:
    """Premises contradict themselves where they should, and entail no more.

    Of the entailments that the rules of the W3C reach, the rule set has all; those
    about classes and properties are not derived by the compiled form. Of those beyond
    the rules, the compiled form has what follows from a reflexive property.
    """
    found: Counter[str] = Counter()
    for case, files in _cases(shared_data):
        kb = made(case, files)
        try:
            kb.load(rdf=files, base=BASE)
            is_contradictory = bool(kb.contradictions(limit=1))
        except UnequalValuesError:
            is_contradictory = True
        kinds, folder = case["kinds"], files[0].parent
        assert is_contradictory == ("inconsistency" in kinds), case["id"]
        found["contradictory"] += is_contradictory
        if "negative-entailment" in kinds:
            assert not _holds(kb, folder / case["files"]["nonconclusion"]), case["id"]
        if "positive-entailment" in kinds:
            holds = _holds(kb, folder / case["files"]["conclusion"])
            found[case["reach"]] += holds
        found["cases"] += 1
    assert found == Counter(
        cases=93, contradictory=14, rules=entailed, refutation=0, beyond=beyond
    )


def _holds(kb: KnowledgeBase, path: Path) -> bool:
    """Whether the triples of a file hold; its blank nodes stand for anything."""
    table = read_rdf(path, base=BASE)
    rows = list(zip(*map(constants, table.columns), strict=True))
    headers = {row[0] for row in rows if row[2].text == OWL + "Ontology"}
    atoms = [f"[{', '.join(map(_term, row))}]" for row in rows if row[0] not in headers]
    return not atoms or bool(len(kb.query(", ".join(atoms))))


def _term(constant: Constant) -> str:
    if constant.kind != Kind.BLANK:
        return str(constant)
    return "?" + re.sub(r"\W", "_", constant.text)


@pytest.mark.parametrize("file", ["Brick-1.1.ttl.gz", "Brick-1.5.ttl.gz"])
def test_sizes_of_closures_of_brick(shared_data: Path, file: str) -> None:
    folder = shared_data / "brick"
    ontologies = json.loads((folder / "index.json").read_text())["ontologies"].values()
    [entry] = [each for each in ontologies if each["file"] == file]
    kb = KnowledgeBase(RHO_DF, equality="off")
    kb.load(rdf=folder / file, base=BASE)
    assert _size(kb) == entry["rho_df"]
