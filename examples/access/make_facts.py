"""Write the facts of this example: a made-up company, always the same one."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path(__file__).parent / "facts"
DEPARTMENTS, TEAMS, PEOPLE, FOLDERS, GRANTS = 12, 80, 900, 700, 160


def main() -> None:
    """Draw the company with a fixed seed and write one file per predicate."""
    draw = random.Random(7)  # noqa: S311  an example, not a secret
    departments = [f"dept-{number}" for number in range(1, DEPARTMENTS + 1)]
    teams = [f"team-{number}" for number in range(1, TEAMS + 1)]
    people = [f"p{number:03}" for number in range(1, PEOPLE + 1)]
    folders = [f"/f{number}" for number in range(FOLDERS)]

    part_of = [(team, draw.choice(departments)) for team in teams]
    part_of += [(department, "company") for department in departments]
    works_in = [(person, draw.choice(teams)) for person in people]
    parent = [
        (folder, folders[draw.randrange(number // 3, number)])
        for number, folder in enumerate(folders)
        if number
    ]
    # Few grants are for everyone, and those are deep in the tree of folders.
    grant = [(draw.choice(teams), draw.choice(folders[20:])) for _ in range(GRANTS)]
    grant += [(each, draw.choice(folders[60:])) for each in departments for _ in "abc"]
    grant += [("company", folders[-1])]
    suspended = [(person,) for person in draw.sample(people, 9)]
    barred = [(draw.choice(people), draw.choice(folders)) for _ in range(60)]

    write("part_of", ("group", "outer"), part_of)
    write("works_in", ("person", "group"), works_in)
    write("parent", ("folder", "outer"), parent)
    write("grant", ("group", "folder"), sorted(set(grant)))
    write("suspended", ("person",), suspended)
    write("barred", ("person", "folder"), sorted(set(barred)))


def write(
    predicate: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> None:
    """Write a file of facts with a header."""
    path = FOLDER / f"{predicate}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([header, *rows])


if __name__ == "__main__":
    main()
