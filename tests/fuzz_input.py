"""Mutated programs and files by the thousand: `python tests/fuzz_input.py --help`.

Every input is read in a process of its own, which may raise an `EvermatError` and
nothing else: no other exception, no end of the process, not more than five seconds of
processor time, not more than a gigabyte of memory. What does is saved with a note.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evermat.api import KnowledgeBase
from evermat.cli.facts import FactReader
from evermat.cli.updates import read_update
from evermat.errors import EvermatError
from evermat.kb.inputs import read_fact_file
from evermat.kb.program_files import read_program
from evermat.lang.catalogue import Catalogue
from evermat.lang.checks import check_program
from evermat.lang.normalise import normalise
from evermat.lang.printer import format_source
from evermat.lang.strata import stratify
from evermat.maintenance.limits import Budget
from evermat.pipeline import read_config
from evermat.pipeline.config import RDF_FORMATS, Column, FactMap, Limit, Source
from evermat.pipeline.intake import LocalIntake
from evermat.pipeline.program import read_pipeline_program
from evermat.rdf import read_ontology
from mutated_input import Input, mutated_file, mutated_program

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 5
MEMORY = 1 << 30
PORTION = 5000
"""Inputs that one process reads. The address space of a process, which is limited here,
grows by some 0.25 MB for each damaged RDF file, though its memory does not."""
_MUTANTS: dict[str, Callable[[int, int], Input]] = {
    "programs": mutated_program,
    "files": mutated_file,
}


def main() -> int:
    """Read so many inputs; returns the number of those that did harm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="how many")
    parser.add_argument("--files", type=int, default=1000, help="how many")
    parser.add_argument("--seconds", type=float, default=None, help="at most so long")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--save", type=Path, default=Path("out/fuzz-input"))
    parser.add_argument("--worker", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.save = options.save.resolve()  # workers read in a folder of their own
    if options.worker:
        kind, start, stop, seed = options.worker
        work(kind, int(start), int(stop), int(seed), options.save)
        return 0
    seed = random.randrange(10**6) if options.seed is None else options.seed  # noqa: S311
    seconds = float("inf") if options.seconds is None else options.seconds
    end = time.monotonic() + seconds
    bad = 0
    for kind, count in (("programs", options.programs), ("files", options.files)):
        watched = Watched(kind, seed, options.save, end)
        watched.run(count)
        bad += sum(watched.harm.values())
        print(watched, flush=True)  # noqa: T201
    return bad


@dataclass
class Watched:
    """Runs workers over numbers of inputs, and starts another where one has died."""

    kind: str
    seed: int
    folder: Path
    end: float
    done: int = 0
    harm: Counter[str] = field(default_factory=Counter)
    memory: int = 0

    def __str__(self) -> str:
        harm = ", ".join(f"{count} {what}" for what, count in self.harm.items())
        return (
            f"{self.kind}: {self.done:,} with seed {self.seed}, "
            f"{harm or 'no harm'}, at most {self.memory >> 20:,} MB"
        )

    def run(self, count: int) -> None:
        """Read the inputs of the first numbers."""
        while self.done < count and time.monotonic() < self.end:
            self._from_here(count)

    def _from_here(self, count: int) -> None:
        stop = min(count, self.done + PORTION)
        arguments = [self.kind, str(self.done), str(stop), str(self.seed)]
        command = [sys.executable, __file__, "--save", str(self.folder), "--worker"]
        with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            used, waited, is_ready = 0.0, time.monotonic(), False
            heard = b""
            while time.monotonic() < self.end:
                ready, _, _ = select.select([worker.stdout], [], [], 1)
                if not ready:
                    # A busy machine is slow; what counts is the time of the worker.
                    spent = processor_seconds(worker.pid) - used
                    if is_ready and (
                        spent > SECONDS or time.monotonic() - waited > 20 * SECONDS
                    ):
                        worker.kill()
                        self._note("hang", f"{spent:.1f} s")
                        return
                    continue
                # Not by lines: what a buffer holds back would seem to take long.
                piece = os.read(worker.stdout.fileno(), 1 << 16)
                if not piece:
                    break
                is_ready, waited = True, time.monotonic()
                used = processor_seconds(worker.pid)
                *lines, heard = (heard + piece).split(b"\n")
                if any(self._heard(line.decode().split()) for line in lines):
                    return
            else:
                worker.kill()
                return
            code = worker.wait()
            if code or self.done < stop:
                self._note("crash", f"exit code {code}")

    def _heard(self, words: list[str]) -> bool:
        """Take in what a worker said; whether it has ended with that."""
        match words:
            case ["done", number, memory]:
                self.done = int(number) + 1
                self.memory = max(self.memory, int(memory))
            case ["error", _]:
                self.harm["error"] += 1
            case ["memory", size]:
                self.memory = max(self.memory, int(size))
                self._note("memory", f"{int(size) >> 20} MB")
                return True
        return False

    def _note(self, what: str, remark: str) -> None:
        """Save the input that is in work, and go on behind it."""
        self.harm[what] += 1
        given = _MUTANTS[self.kind](self.done, self.seed)
        save(self.folder, self.kind, self.done, given, f"{what}: {remark}")
        self.done += 1


def processor_seconds(process: int) -> float:
    """The processor time of a process so far."""
    try:
        words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def save(folder: Path, kind: str, number: int, given: Input, note: str) -> None:
    """Keep an input that did harm, beside a note on what it did."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{kind}-{number}"
    (folder / f"{name}{given.form.replace('.', '-')}").write_bytes(given.data)
    (folder / f"{name}.note").write_text(f"{given.form}\n{note}\n")


# ------------------------------------------------------------------------- the worker


def work(kind: str, start: int, stop: int, seed: int, folder: Path) -> None:
    """Read inputs one after the other, telling the parent of each."""
    warnings.simplefilter("ignore")
    # A brake: what asks for more at once is refused before the machine suffers.
    resource.setrlimit(resource.RLIMIT_AS, (8 * MEMORY, 8 * MEMORY))
    read = read_mutated_program if kind == "programs" else read_mutated_file
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        for number in range(start, stop):
            given = _MUTANTS[kind](number, seed)
            try:
                read(given)
            except EvermatError as error:
                str(error)
            except Exception:  # noqa: BLE001  that is what is looked for
                save(folder, kind, number, given, traceback.format_exc())
                print("error", number, flush=True)  # noqa: T201
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
            if used > MEMORY:
                print("memory", used, flush=True)  # noqa: T201
                return
            print("done", number, used, flush=True)  # noqa: T201


def read_mutated_program(given: Input) -> None:
    """Read, check, print and plan a program; a short one is run, too."""
    text = given.data.decode("utf-8", "replace")
    if given.form == "evermat" and len(text) % 4 == 0:
        format_source(text)
    program = read_program(text, given.form)  # type: ignore[arg-type]
    report = check_program(program)
    for problem in (*report.errors, *report.warnings):
        str(problem)
    str(program)
    if report.errors:
        return
    stratify(normalise(program.rules))
    if len(program.rules) <= 20 and len(text) % 8 == 0:
        budget = Budget(rounds=20, facts=500, seconds=1)
        # Files that it names are not there.
        bare = type(program)(rules=program.rules, facts=program.facts)
        KnowledgeBase(bare, engine="reference", budget=budget)


def read_mutated_file(given: Input) -> None:
    """Read a file as what its name says, in each way there is to read it."""
    path = Path("p" + given.form)
    path.write_bytes(given.data)
    if given.form == "config.toml":
        read_pipeline_program(read_config(path))
    elif given.form == "update.toml":
        read_update(path, FactReader(Catalogue()))
    else:
        _read_data(path, given.form)


def _read_data(path: Path, form: str) -> None:
    problem: EvermatError | None = None
    for read in (_as_facts, _as_ontology, _as_source):
        try:
            read(path, form)
        except EvermatError as error:
            problem = error
    if problem is not None:
        raise problem


def _as_facts(path: Path, _: str) -> None:
    table = read_fact_file(path)
    KnowledgeBase(engine="reference").insert("p", table)


def _as_ontology(path: Path, form: str) -> None:
    if form.split(".")[1] in RDF_FORMATS | {"owl"}:
        read_ontology(path)


def _as_source(path: Path, form: str) -> None:
    kind = {"facts": "tsv", "jsonl": "json", "owl": "rdf"}.get(
        form.split(".")[1], form.split(".")[1]
    )
    if kind == "arrow":
        return
    columns = () if kind in RDF_FORMATS else (Column("a"), Column("b", "integer"))
    predicate = "triple" if kind in RDF_FORMATS else "p"
    source = Source(
        name="mutated",
        format=kind,  # type: ignore[arg-type]
        paths=(str(path.resolve()),),
        columns=columns,
        facts=(FactMap(predicate),),
        limit=Limit(rows=None),
        header=len(form) % 2 == 0,
        delimiter="\t" if kind == "tsv" else ",",
    )
    LocalIntake().take(source, source.paths, str(Path("aside").resolve()))


if __name__ == "__main__":
    sys.exit(min(main(), 100))
