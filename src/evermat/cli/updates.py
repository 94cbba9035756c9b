"""Updates as files: TOML, or a folder.

A folder has some of `insert/`, `delete/`, `replace/`, `rules+` and `rules-`.

```toml
title = "Monday"            # optional, for the table of reports
algorithm = "dred-c"        # optional

[delete]
edge = [["a", "b"]]         # rows …
age = [{person = "ann", years = 7}]  # … with declared names, …

[insert]
edge = "new-edges.csv"      # … or a file, relative to this one

[replace]
person = "tonight.csv"      # all explicit facts of the predicate from now on

[rules]
add = "reach(?x, ?z) :- reach(?x, ?y), reach(?y, ?z) ."
remove_file = "old.dl"
```
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from evermat.errors import EvermatError, Label, Source, Span
from evermat.io.files import FileMissingError
from evermat.io.places import decoded
from evermat.io.toml_text import read_toml
from evermat.runtime.input_limits import require_allowed

if TYPE_CHECKING:
    from pathlib import Path

    from evermat.cli.facts import FactReader
    from evermat.kb.inputs import RuleInput

_SECTIONS = {"title", "algorithm", "insert", "delete", "replace", "rules"}
_RULE_KEYS = {"add", "remove", "add_file", "remove_file"}
_FOLDER_PARTS = "`insert/`, `delete/`, `replace/`, `rules+` and `rules-`"


class UpdateFileError(EvermatError, ValueError):
    """A file or folder that does not define an update."""

    code: ClassVar[str] = "EM554"


@dataclass(slots=True)
class UpdateFile:
    """An update that was read from files, as arguments of `KnowledgeBase.update`.

    Attributes:
        name: its name in tables: that of the file or folder.
        title: the heading of its changes.
    """

    name: str
    title: str
    algorithm: str | None = None
    insert: dict[str, object] = field(default_factory=dict)
    delete: dict[str, object] = field(default_factory=dict)
    replace: dict[str, object] = field(default_factory=dict)
    add_rules: list[RuleInput] = field(default_factory=list)
    remove_rules: list[RuleInput] = field(default_factory=list)


def read_update(path: Path, reader: FactReader) -> UpdateFile:
    """Read a TOML file or a folder.

    Raises:
        UpdateFileError: it is neither, or has unexpected contents.
    """
    if path.is_dir():
        return _read_folder(path, reader)
    if not path.is_file():
        raise FileMissingError(path)
    return _read_toml(path, reader)


# ------------------------------------------------------------------------ folders


def _read_folder(folder: Path, reader: FactReader) -> UpdateFile:
    update = UpdateFile(name=folder.name, title=folder.name)
    found = False
    parts = {"insert": update.insert, "delete": update.delete}
    parts["replace"] = update.replace
    for name, facts in parts.items():
        if (folder / name).is_dir():
            found = True
            facts.update(reader.read([str(folder / name)]))
    for name, rules in (("rules+", update.add_rules), ("rules-", update.remove_rules)):
        files = sorted(each for each in folder.glob(f"{name}*") if each.is_file())
        found = found or bool(files)
        rules.extend(files)
    if not found:
        raise UpdateFileError(
            f"the folder `{folder}` holds no update",
            reason=f"an update folder has some of {_FOLDER_PARTS}",
        )
    return update


# --------------------------------------------------------------------------- TOML


def _read_toml(path: Path, reader: FactReader) -> UpdateFile:
    text = decoded(path, path.read_bytes())
    try:
        content = read_toml(text, path.name)
    except tomllib.TOMLDecodeError as error:
        raise _not_toml(path, text, error) from error
    _refuse_unknown(path, content, _SECTIONS, "an update has")
    rules = _table(path, "rules", content)
    _refuse_unknown(path, rules, _RULE_KEYS, "`[rules]` has")
    return UpdateFile(
        name=path.stem,
        title=str(content.get("title", path.stem)),
        algorithm=content.get("algorithm"),
        insert=_facts(path, "insert", content, reader),
        delete=_facts(path, "delete", content, reader),
        replace=_facts(path, "replace", content, reader),
        add_rules=_rules(path, rules, "add"),
        remove_rules=_rules(path, rules, "remove"),
    )


def _facts(
    path: Path, section: str, content: dict[str, object], reader: FactReader
) -> dict[str, object]:
    facts = _table(path, section, content)
    read: dict[str, object] = {}
    for predicate, rows in facts.items():
        match rows:
            case str():
                read[predicate] = reader.read_file(_named(path, rows), predicate)
            case list() if all(isinstance(row, list) for row in rows):
                read[predicate] = [tuple(row) for row in rows]
            case list() if all(isinstance(row, dict) for row in rows):
                read[predicate] = rows  # by the names of columns
            case _:
                raise UpdateFileError(
                    f"`{section}.{predicate}` in `{path}` is neither rows nor a file",
                    help='write rows as [["a", "b"]] or [{from = "a", to = "b"}], and '
                    'a file as "file.csv"',
                )
    return read


def _rules(path: Path, rules: dict[str, object], verb: str) -> list[RuleInput]:
    found: list[RuleInput] = []
    for key, make in ((verb, str), (f"{verb}_file", partial(_named, path))):
        value = rules.get(key, [])
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
            raise UpdateFileError(
                f"`rules.{key}` in `{path}` is neither text nor a list of texts"
            )
        found += [make(text) for text in texts]
    return found


def _named(update: Path, name: str) -> Path:
    """Return the path of a file named by an update: beside or below it, or allowed."""
    path = update.parent / name
    require_allowed(path, update.parent)
    return path


def _table(path: Path, name: str, content: dict[str, object]) -> dict[str, object]:
    value = content.get(name, {})
    if not isinstance(value, dict):
        raise UpdateFileError(
            f"`{name}` in `{path}` is not a table",
            help=f"write [{name}] on a line of its own, and its contents below",
        )
    return value


def _refuse_unknown(
    path: Path, content: dict[str, object], known: set[str], reason: str
) -> None:
    for name in content:
        if name not in known:
            names = ", ".join(f"`{each}`" for each in sorted(known))
            raise UpdateFileError(
                f"`{path}` has an unknown entry `{name}`", reason=f"{reason} {names}"
            )


def _not_toml(path: Path, text: str, error: tomllib.TOMLDecodeError) -> UpdateFileError:
    message = str(error)
    labels: tuple[Label, ...] = ()
    _, _, place = message.partition("(at line ")
    line, _, column = place.rstrip(")").partition(", column ")
    if line.isdigit() and column.isdigit():
        message = message.partition(" (at line ")[0]
        lines = text.split("\n")
        start = sum(len(each) + 1 for each in lines[: int(line) - 1]) + int(column) - 1
        labels = (Label(Span(Source(str(path), text), start, start + 1)),)
    return UpdateFileError(
        f"`{path.name}` is not TOML: {message[:1].lower()}{message[1:]}", labels=labels
    )
