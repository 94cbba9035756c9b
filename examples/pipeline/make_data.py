"""Writes the data of this example: products, what they contain, what they are made of.

Some rows are wrong on purpose: a pipeline sets them aside and says why.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "data"
PARTS = 240
LEVELS = 4
MATERIALS = ["Steel", "Brass", "Glass", "Oak", "Lead", "Cadmium", "Nylon", "Rubber"]
BASE = "http://example.org/"


def main() -> None:
    """Write all files."""
    choice = random.Random(7)  # noqa: S311  the same data each time
    FOLDER.mkdir(exist_ok=True)
    products(choice)
    contents(choice)
    materials(choice)


def products(choice: random.Random) -> None:
    """Numbers, names, prices and makers, as CSV."""
    lines = ["id,name,price,maker"]
    for number in range(1, PARTS + 1):
        price = f"{choice.uniform(0.2, 90):.2f}"
        maker = choice.choice(["Aalto & Sons", "Borg", "Cerny"])
        lines.append(f'{number},"part {number}",{price},{maker}')
    lines[40] = lines[40].replace(",", ",,", 1)  # a column too many
    lines[90] = '90,"part 90",cheap,Borg'  # not a price
    lines[140] = '140,"part 140",-3.00,Borg'  # a price below nothing
    (FOLDER / "products.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def contents(choice: random.Random) -> None:
    """What is built into what, as lines of JSON."""
    size = PARTS // LEVELS
    records = []
    for number in range(1, PARTS - size + 1):
        level = (number - 1) // size + 1
        first, last = level * size + 1, (level + 1) * size
        for part in sorted(choice.sample(range(first, last + 1), 3)):
            count = choice.randint(1, 9)
            records.append({"whole": number, "part": part, "count": count})
    text = "".join(json.dumps(record) + "\n" for record in records)
    (FOLDER / "contents.jsonl").write_text(text, encoding="utf-8")


def materials(choice: random.Random) -> None:
    """What the simplest parts are made of, as N-Triples."""
    lines = []
    for number in range(PARTS - PARTS // LEVELS + 1, PARTS + 1):
        material = choice.choices(MATERIALS, weights=[9, 6, 5, 5, 1, 1, 5, 4])[0]
        lines.append(
            f"<{BASE}part/{number}> <{BASE}madeOf> _:m{number} .\n"
            f"_:m{number} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
            f"<{BASE}{material}> ."
        )
    text = "\n".join(lines) + "\n"
    # One line was saved in another encoding, as it happens.
    broken = f'<{BASE}part/200> <{BASE}label> "Führung" .\n'.encode("latin-1")
    (FOLDER / "materials.nt").write_bytes(text.encode() + broken)


if __name__ == "__main__":
    main()
