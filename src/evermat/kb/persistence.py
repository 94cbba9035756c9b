"""The connection of a knowledge base to its state on a lake: restoring and writing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, cast

from evermat.kb.equality import EqualityMaterialisation
from evermat.kb.inputs import read_rules
from evermat.kb.requests import Request
from evermat.lake.errors import StateError, StateSettingsError
from evermat.lake.state import LakeState, Settings, open_state
from evermat.lang.checks import require_functions
from evermat.lang.syntax import canonical, rule_key
from evermat.maintenance.rules import single_heads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from evermat.algebra import Engine
    from evermat.kb.equality import Equality
    from evermat.kb.inputs import RuleInput
    from evermat.kb.materialisation import Materialisation
    from evermat.lake.state import Batch
    from evermat.lang.catalogue import Catalogue
    from evermat.lang.syntax import Rule
    from evermat.maintenance.counting import CountersSetting


class StoredSettings(TypedDict):
    """The settings of a knowledge base that is restored from a state."""

    counters: CountersSetting
    modules: bool
    equality: Equality


class Persistence:
    """Connects a materialisation with its state.

    Attributes:
        state: the state on the lake.
    """

    def __init__(self, state: LakeState, settings: Settings) -> None:
        self.state = state
        self._settings = settings
        if state.program is not None:
            _require_same(state.program.settings, settings)

    @property
    def rewrites(self) -> bool:
        """Whether facts are stored in terms of representatives."""
        program = self.state.program
        stored = self._settings if program is None else program.settings
        return stored.rewrites or stored.equality == "rewrite"

    def connect(
        self, materialisation: Materialisation | EqualityMaterialisation
    ) -> None:
        """Restore the state, and write every later update to it."""
        program = self.state.program
        if program is None:
            self.state.start(materialisation.engine)
        else:
            for each in program.predicates:
                materialisation.engine.declare(each.name, each.arity)
            rules = program.parsed_rules()
            require_functions(rules)
            materialisation.take_up(rules, program.settings.claimed)
            _require_same_modules(program.settings.claimed, materialisation.claimed)
            instances = self.state.restore(materialisation.engine)
            if isinstance(materialisation, EqualityMaterialisation):
                materialisation.taken_up(self.state.restore_cliques())
            else:
                materialisation.taken_up(instances)

    def announce(
        self,
        materialisation: Materialisation | EqualityMaterialisation,
        catalogue: Catalogue,
        prefixes: Mapping[str, str],
        batch: Batch | None,
    ) -> None:
        """Announce the contents of the next update, and have it written."""
        materialisation.journal = self.state.write
        rewrites = isinstance(materialisation, EqualityMaterialisation)
        self.state.expect(
            catalogue=catalogue,
            prefixes=prefixes,
            settings=replace(self._settings, rewrites=rewrites),
            batch=batch,
        )

    def finish(self, engine: Engine) -> None:
        """Record that the announced update is complete in the engine."""
        self.state.finish(engine)

    @staticmethod
    def difference(
        rules: list[RuleInput], known: Iterable[Rule], prefixes: Mapping[str, str]
    ) -> Request | None:
        """Return the request that turns the known program into the specified one.

        Facts among the rules are inserted. None if there is nothing to change.
        """
        read = read_rules(rules, prefixes=prefixes)
        program = read.program
        has_facts = bool(program.facts or read.tables)
        wanted = set()
        for rule in program.rules:
            has_facts = has_facts or not rule.body
            if rule.body:
                wanted |= {rule_key(each) for each in single_heads((rule,))}
        there = {rule_key(rule): rule for rule in known}
        if wanted == there.keys() and not has_facts:
            return None
        removed: list[RuleInput] = [
            rule for key, rule in there.items() if key not in wanted
        ]
        return Request(add_rules=rules, remove_rules=removed)


def open_persistence(
    place: str | Path | LakeState,
    settings: tuple[CountersSetting, bool, str],
    options: Mapping[str, str] | None,
) -> Persistence:
    """Open the state at a path; a state that is open already is used as it is."""
    state = place
    if not isinstance(state, LakeState):
        state = open_state(state, options=options)
    return Persistence(state, Settings(*settings))


def existing_state(
    place: str | Path, version: int | None, options: Mapping[str, str] | None
) -> tuple[LakeState, StoredSettings]:
    """Open a state that must exist; return it with the settings it was created with."""
    state = open_state(place, version=version, options=options, must_exist=True)
    program = state.program
    if program is None and version is not None:
        raise StateError(f"open the state at `{place}`", "this version is empty")
    # The process may have stopped right after creating the table: start from empty.
    stored = Settings() if program is None else program.settings
    equality = cast("Equality", stored.equality)
    settings = StoredSettings(
        counters=stored.counters, modules=stored.modules, equality=equality
    )
    return state, settings


def _require_same(stored: Settings, asked: Settings) -> None:
    for name in ("counters", "modules", "equality"):
        was, now = getattr(stored, name), getattr(asked, name)
        if was != now:
            raise StateSettingsError(
                f"the state was made with `{name}={was!r}`, and is opened with {now!r}",
                help="`KnowledgeBase.open` takes the settings of the state",
            )


def _require_same_modules(stored: Iterable[str], found: Iterable[Rule]) -> None:
    rules = tuple(found)
    now = {str(canonical(rule)) for rule in rules}
    # Older states store the rules in the users' spelling.
    if set(stored) not in (now, {str(rule) for rule in rules}):
        others = ", ".join(
            f"`{rule}`" for rule in sorted(now.symmetric_difference(stored))
        )
        raise StateSettingsError(
            f"modules would take care of other rules than when the state was made: "
            f"{others}",
            help="register the same modules, or make a new state",
        )
