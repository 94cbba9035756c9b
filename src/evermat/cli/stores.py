"""`evermat update` and `evermat store`: states that are kept between commands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from evermat.cli.changing import apply_updates
from evermat.cli.contradictions import show_contradictions
from evermat.cli.jobs import load, warn_of_unused
from evermat.cli.updates import UpdateFile
from evermat.errors.wording import counted
from evermat.lang.printer import Printer
from evermat.runtime.input_limits import allowing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import ModuleType

    from evermat.cli.jobs import Job, Loaded
    from evermat.cli.output import Output
    from evermat.lake import Verification


@dataclass(frozen=True, slots=True)
class NamedUpdate:
    """An update given by options of the command line."""

    insert: list[str]
    delete: list[str]
    replace: list[str]
    add_rules: list[Path]
    remove_rules: list[Path]

    def __bool__(self) -> bool:
        facts = self.insert or self.delete or self.replace
        return bool(facts or self.add_rules or self.remove_rules)

    def read(self, loaded: Loaded) -> UpdateFile:
        """Return the update, with its facts read from their files."""
        return UpdateFile(
            name="update",
            title="update",
            insert=dict(loaded.reader.read(self.insert)),
            delete=dict(loaded.reader.read(self.delete)),
            replace=dict(loaded.reader.read(self.replace)),
            add_rules=list(self.add_rules),
            remove_rules=list(self.remove_rules),
        )


def update_store(job: Job, named: NamedUpdate, output: Output) -> None:
    """Open a store and apply the update of the options, then those of files."""
    loaded = load(job, output)
    before = loaded.kb.predicates
    with allowing(job.places()):
        first = named.read(loaded) if named else None
        apply_updates(job, loaded, output, first)
    show_contradictions(loaded.kb, output)
    if not (job.is_dry_run and named.add_rules):  # they may speak of the facts
        warn_of_unused(loaded.reader, loaded.kb, known=before)


def show_history(place: str, output: Output) -> None:
    """Print a table of the versions."""
    versions = _lake().history(place)
    output.document["versions"] = [
        {
            "version": each.number,
            "time": each.time.isoformat(),
            "added": dict(each.added),
            "removed": dict(each.removed),
            "restored": each.restored,
        }
        for each in versions
    ]
    output.table(
        ["version", "time", "added", "removed"],
        [
            [
                each.number,
                each.time.isoformat(" ", "seconds"),
                sum(each.added.values()),
                sum(each.removed.values()),
            ]
            for each in versions
        ],
    )


def show_changes(place: str, since: int, until: int | None, output: Output) -> None:
    """Print a table of the added and removed facts, with arguments as terms."""
    table = _lake().change_table(place, since=since, until=until)
    rows = table.to_pylist()
    printer = Printer({})
    output.document["changes"] = rows
    output.table(
        ["version", "sign", "fact"],
        [
            [
                row["version"],
                row["sign"],
                f"{printer.predicate(row['predicate'])}({', '.join(row['values'])})",
            ]
            for row in rows
        ],
    )


def vacuum_store(place: str, keep: int, hours: int, output: Output) -> None:
    """Remove files, and print how many."""
    removed = _lake().vacuum(place, keep=keep, hours=hours)
    output.document["removed"] = removed
    output.say(f"removed {counted(len(removed), 'file')}")


def verify_store(place: str, output: Output) -> bool:
    """Print what was checked and what is damaged; return whether nothing is."""
    found: Verification = _lake().verify(place)
    output.document |= asdict(found)
    output.table(
        ["checked", "count"],
        [
            ["versions from", found.oldest],
            ["versions to", found.latest],
            ["versions that can be read", len(found.versions)],
            ["data files", found.files],
            ["bytes of data", found.size],
            ["data files without a digest", found.without_digest],
            ["damaged files", len(found.problems)],
            ["damaged files of versions given up", len(found.left_behind)],
        ],
    )
    for title, problems in (
        ("damaged", found.problems),
        ("damaged, and needed by versions only that were given up", found.left_behind),
    ):
        if problems:
            output.heading(title)
            output.table(
                ["file", "versions", "reason"],
                [[each.file, _ranges(each.versions), each.reason] for each in problems],
            )
    if found.problems and found.versions:
        output.say(f"the newest version that can be read is {max(found.versions)}")
    return found.is_whole


def _ranges(numbers: Sequence[int]) -> str:
    """Format ascending numbers, with consecutive ones as ranges: 1-3, 7."""
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(
        str(first) if first == last else f"{first}-{last}" for first, last in found
    )


def audit_store(place: str, output: Output) -> bool:
    """Compare a store with a rematerialisation; return whether they are equal."""
    from evermat.api import KnowledgeBase

    found = KnowledgeBase.open(place).audit()
    output.document |= asdict(found)
    output.say(str(found))
    return bool(found)


def restore_store(place: str, to: int, output: Output) -> None:
    """Restore a version, and print its new number."""
    version = _lake().restore(place, to=to)
    output.document |= {"restored": to, "version": version}
    output.say(f"version {to} is restored as version {version} of {place}")


def _lake() -> ModuleType:
    """Import the reader of stores, which needs an optional library."""
    from evermat import lake

    return lake
