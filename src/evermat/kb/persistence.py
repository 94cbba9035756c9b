"""A knowledge base with a state on a lake: how it is taken up and kept up to date."""

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
    """What a knowledge base is made with that goes on from a state."""

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
        """Whether facts hold constants that stand for all that are equal."""
        program = self.state.program
        stored = self._settings if program is None else program.settings
        return stored.rewrites or stored.equality == "rewrite"

    def connect(self, kept: Materialisation | EqualityMaterialisation) -> None:
        """Restore what there is, and have every update written from now on."""
        program = self.state.program
        if program is None:
            self.state.start(kept.engine)
        else:
            for each in program.predicates:
                kept.engine.declare(each.name, each.arity)
            rules = program.parsed_rules()
            require_functions(rules)
            kept.take_up(rules, program.settings.claimed)
            _require_same_modules(program.settings.claimed, kept.claimed)
            instances = self.state.restore(kept.engine)
            if isinstance(kept, EqualityMaterialisation):
                kept.taken_up(self.state.restore_cliques())
            else:
                kept.taken_up(instances)

    def announce(
        self,
        kept: Materialisation | EqualityMaterialisation,
        catalogue: Catalogue,
        prefixes: Mapping[str, str],
        batch: Batch | None,
    ) -> None:
        """Say what the next update comes with, and have it written."""
        kept.journal = self.state.write
        rewrites = isinstance(kept, EqualityMaterialisation)
        self.state.expect(
            catalogue=catalogue,
            prefixes=prefixes,
            settings=replace(self._settings, rewrites=rewrites),
            batch=batch,
        )

    def finish(self, engine: Engine) -> None:
        """Say that the update that was announced is done, and in an engine."""
        self.state.finish(engine)

    @staticmethod
    def difference(
        rules: list[RuleInput], known: Iterable[Rule], prefixes: Mapping[str, str]
    ) -> Request | None:
        """What to ask for so that a program becomes what it is said to be.

        Facts among the rules are inserted. None if there is nothing to ask for.
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
    """The state at a place, or one that is open already."""
    state = place
    if not isinstance(state, LakeState):
        state = open_state(state, options=options)
    return Persistence(state, Settings(*settings))


def existing_state(
    place: str | Path, version: int | None, options: Mapping[str, str] | None
) -> tuple[LakeState, StoredSettings]:
    """A state that must be there, and the settings that it was made with."""
    state = open_state(place, version=version, options=options, must_exist=True)
    program = state.program
    if program is None and version is not None:
        raise StateError(f"open the state at `{place}`", "this version is empty")
    # The process may have died right after making the table: the state begins here.
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
    # Older states have the rules as users spelt them.
    if set(stored) not in (now, {str(rule) for rule in rules}):
        others = ", ".join(
            f"`{rule}`" for rule in sorted(now.symmetric_difference(stored))
        )
        raise StateSettingsError(
            f"modules would take care of other rules than when the state was made: "
            f"{others}",
            help="register the same modules, or make a new state",
        )
