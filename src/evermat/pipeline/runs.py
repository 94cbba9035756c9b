"""Runs a pipeline: read, check, commit, publish, report.

Every step has a name, which is added to its errors. Nothing is committed before all
sources are read and accepted, and the commit is one transaction: any error before it
leaves the state unchanged.
"""

from __future__ import annotations

import datetime
import signal
import sys
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version as version_of_package
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Literal

from evermat.engines import make_engine
from evermat.engines.spark.limits import OutgrownError
from evermat.engines.spark.session import SessionToCome
from evermat.errors import EvermatError
from evermat.errors.wording import counted
from evermat.lang.catalogue import ColumnNames
from evermat.lang.syntax import Program
from evermat.pipeline.change_files import (
    Ledger,
    change_files,
    net_changes,
    unseen_files,
)
from evermat.pipeline.config import DATABASE_FORMATS, LINE_FORMATS, SPARK_FORMATS
from evermat.pipeline.errors import (
    OutputError,
    PipelineStateError,
    RejectedRowsError,
    naming,
    notes,
)
from evermat.pipeline.expectations import look_into, require_met
from evermat.pipeline.files import line_number
from evermat.pipeline.intake import LocalIntake, plan_files
from evermat.pipeline.outputs import Publisher, check_feeds, check_outputs
from evermat.pipeline.place import Place, choose_place, is_for_driver
from evermat.pipeline.program import (
    RowChanges,
    first_request,
    jobs_of,
    lake_state,
    next_request,
    open_knowledge_base,
    read_pipeline_program,
    save_snapshot,
    state_versions,
    version_of,
)
from evermat.pipeline.report import FAILED, RunReport, Silent, Steps, write_report
from evermat.pipeline.spark_io import SparkIntake
from evermat.pipeline.spark_session import (
    has_session,
    plain_spark_errors,
    spark_session,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from evermat.algebra import Engine
    from evermat.api import KnowledgeBase
    from evermat.maintenance.limits import Progress
    from evermat.pipeline.config import Config, Source
    from evermat.pipeline.intake import Intake, Taken
    from evermat.pipeline.program import PipelineProgram, Request
    from evermat.pipeline.report import Step, Watcher
    from evermat.pipeline.stream import StreamReport
    from evermat.results.change import Change


# ----------------------------------------------------------------------------- locking

# A lock for one run of a pipeline at a time.
#
# Two runs at once would replace the same folders, and the one that began first might
# publish outdated results last. The second one is rejected rather than delayed: after a
# stream it would wait forever.


class PipelineBusyError(EvermatError, RuntimeError):
    """Another run of the same pipeline is in progress."""

    code: ClassVar[str] = "EM808"


@contextmanager
def alone(config: Config) -> Iterator[None]:
    """Exclude other runs of the same configuration on this machine.

    The configuration file itself is locked: no additional file is needed, which a
    killed run would leave behind, and the system unlocks it when a process ends.

    Raises:
        PipelineBusyError: there is another run.
    """
    if sys.platform == "win32" or not config.file.exists():
        yield  # no other process can run a removed file
        return
    import fcntl  # noqa: PLC0415  not everywhere

    with config.file.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineBusyError(
                f"another run of `{config.file}` is under way",
                reason="a pipeline replaces its outputs, which only one run can do at "
                "a time",
                help="wait until it is over; a stream is ended by an interrupt",
            ) from None
        yield


# -------------------------------------------------------------------------------- runs

READ_HERE = 2 << 20
"""Bytes of files up to which the driver reads them: a job has a fixed cost."""
Command = Literal["run", "update", "stream"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished run, and the place of its report."""

    report: RunReport
    document: str
    page: str

    def __repr__(self) -> str:
        report = self.report
        what = f"{report.command} of {report.pipeline}"
        return f"<Finished {what}: version {report.version}, see {self.page}>"


@dataclass
class Pipeline:
    """A pipeline to be run.

    Attributes:
        config: the configuration.
        watcher: receives the start and end of every step.
        progress: receives every round of a materialisation.
        is_profiled: whether the report says what each rule costs.
    """

    config: Config
    watcher: Watcher = field(default_factory=Silent)
    progress: Progress | None = None
    is_profiled: bool = False

    def __repr__(self) -> str:
        config = self.config
        parts = f"{counted(len(config.sources), 'source')}, "
        parts += counted(len(config.outputs), "output")
        return f"<Pipeline {config.name} on {config.engine.name}: {parts}>"

    def run(self, *, is_dry: bool = False) -> Finished:
        """Read all sources as a whole, and derive the state from them.

        Args:
            is_dry: only compute what would change; nothing is written but rejected
                rows.

        Raises:
            EvermatError: the run failed and left the state unchanged. A report has been
                written nevertheless.
        """
        return self._reported("run", is_dry=is_dry)

    def update(self, *, is_dry: bool = False) -> Finished:
        """Read the changes since the last run, and maintain the state.

        Args:
            is_dry: as for `run`.

        Raises:
            EvermatError: as for `run`.
        """
        return self._reported("update", is_dry=is_dry)

    def check(self) -> None:
        """Check that everything exists and fits together, without reading rows.

        Raises:
            EvermatError: with all problems.
        """
        with ExitStack() as stack:
            report, steps = (
                RunReport(self.config.name, "check", "", ""),
                Steps(self.watcher),
            )
            _Work(self, "run", report, steps, stack).check()

    def stream(self) -> Finished:
        """Follow the stream of change events of the configuration.

        Raises:
            EvermatError: as for `run`; batches that were committed stay.
        """
        if self.config.stream is None:
            raise PipelineStateError(
                "the configuration has no [stream]",
                help='write [stream], `format = "json"` and `path = "…"`',
            )
        return self._reported("stream")

    def _reported(self, command: Command, *, is_dry: bool = False) -> Finished:
        # A rejected run has no report.
        with alone(self.config):
            return self._carried_out(command, is_dry=is_dry)

    def _carried_out(self, command: Command, *, is_dry: bool) -> Finished:
        now = datetime.datetime.now(datetime.UTC)
        report = RunReport(
            pipeline=self.config.name,
            command=command,
            run=f"{now:%Y%m%dT%H%M%S}.{now.microsecond:06}-{command}",
            started=now.isoformat(timespec="seconds"),
            engine=self.config.engine.name,
            environment={"evermat": version_of_package("evermat")},
        )
        steps = Steps(self.watcher)
        start = perf_counter()
        try:
            with ExitStack() as stack:
                work = _Work(self, command, report, steps, stack, is_dry)
                if command == "stream":
                    work.follow()
                else:
                    work.do_where_it_fits()
        except BaseException as error:
            report.status = FAILED
            report.error = "\n".join([_what_happened(error), *notes(error)])
            report.finish(steps.done, perf_counter() - start)
            if is_dry:
                raise
            try:
                write_report(report, self.config.reports)
            except OutputError as second:
                # The first error is the one that users have to know.
                error.add_note(f" = report: {second.message}")
            raise
        report.finish(steps.done, perf_counter() - start)
        if is_dry:
            return Finished(report, "", "")
        with naming("write the report"):
            document, page = write_report(report, self.config.reports)
        return Finished(report, document, page)


@dataclass
class _Work:
    """One run, step by step."""

    pipeline: Pipeline
    command: Command
    report: RunReport
    steps: Steps
    stack: ExitStack
    is_dry: bool = False
    program: Program = field(default_factory=Program)

    @property
    def config(self) -> Config:
        return self.pipeline.config

    def do_where_it_fits(self) -> None:
        """Run on the driver if the facts fit there, otherwise distributed."""
        try:
            self.do()
        except OutgrownError:
            # Nothing was committed. More facts were derived than expected.
            self._place = Place("distributed", f"it outgrew the {self._place}")
            self.report.place = str(self._place)
            self.report.sources.clear()
            self.do()

    @cached_property
    def _place(self) -> Place:
        if self.config.engine.name != "spark":
            return Place("driver", "")
        with self.steps.step("choose the place") as step, plain_spark_errors():
            place = choose_place(self.config, self.command, lambda: self.spark)
            step.note = self.report.place = str(place)
        return place

    def do(self) -> None:
        """Run all steps."""
        with self.steps.step("read rules") as step:
            program = read_pipeline_program(self.config)
            self.program = program.program
            self.report.ignored_axioms = dict(program.ignored)
            step.note = counted(len(program.program.rules), "rule")
        has_state = self._has_state()
        # A new state is not created before all sources are accepted.
        kb = self._open() if has_state else None
        with naming("check the outputs"):
            check_outputs(self.config, program, kb)
            check_feeds(self.config, kb)
        request = self._request(kb, program)
        kb = self._open() if kb is None else kb
        if self.is_dry:
            self._plan(kb, request)
            return
        change = self._commit(kb, request)
        self._check_expectations(kb)
        self._publish(kb, change)
        save_snapshot(kb)

    def check(self) -> None:
        """Check everything, and report all problems."""
        program: PipelineProgram | None = None
        found: list[EvermatError] = []

        @contextmanager
        def looking(what: str) -> Iterator[Step]:
            try:
                with self.steps.step(what) as step:
                    yield step
            except EvermatError as error:
                found.append(error)

        with looking("read rules") as step:
            program = read_pipeline_program(self.config)
            self.program = program.program
            step.note = counted(len(program.program.rules), "rule")
        for source in self.config.sources:
            with looking(f"look at source {source.name}") as step:
                step.note = self._looked_at(source)
        with looking("look for the state") as step:
            versions = state_versions(self.config)
            step.note = counted(len(versions), "version") if versions else "none so far"
        if program is not None:
            with looking("check outputs and expectations"):
                check_outputs(self.config, program, None)
        if found:
            first, *others = found
            for error in others:
                first.add_note(str(error))
            raise first

    def _looked_at(self, source: Source) -> str:
        """Check that a source exists with the right columns; describe its contents."""
        if source.format in DATABASE_FORMATS:
            return "a database, which is not looked at"
        plan = plan_files(self._with_declared_names(source), source.paths)
        files = counted(len({split.file.uri for split in plan.splits}), "file")
        if not source.has_changes:
            return files
        return (
            f"{files}, {counted(len(unseen_files(source, Ledger(()))), 'change file')}"
        )

    def follow(self) -> None:
        """Maintain the state along a stream, then write full outputs."""
        from evermat.pipeline.stream import StreamSource, stream  # noqa: PLC0415  needs a library

        settings = self.config.stream
        assert settings is not None  # noqa: S101  looked at before
        self._has_state()
        kb = self._open()
        source = StreamSource(
            format=settings.format,
            path=settings.path,
            options=dict(settings.options),
            events=settings.events,
            schema=settings.schema,
        )
        with (
            self.steps.step("follow the stream") as step,
            plain_spark_errors(),
            _stopped_by_signals(settings.trigger) as stop,
        ):
            done = stream(
                kb,
                source,
                app_id=settings.app_id,
                checkpoint=settings.checkpoint,
                feed=settings.feed,
                dead_letters=settings.dead_letters,
                trigger=settings.trigger,
                spark=self.spark if kb.engine == "spark" else None,
                stop=stop,
                on_batch=lambda sums: self.pipeline.watcher.tell(_told(sums)),
                storage_options=dict(self.config.state_options) or None,
            )
            step.note = _told(done)
            self.report.add_stream(kb, done)
            self.report.version = done.version
        self._publish(kb, None)

    def _has_state(self) -> bool:
        """Return whether there is a state, which only `run` can do without."""
        with naming("look for the state"):
            if state_versions(self.config):
                return True
            if self.command == "run":
                return False
            place = self.config.state
            raise PipelineStateError(
                f"there is no state to {self.command}"
                + (": the configuration has no [state]" if place is None else ""),
                help='write [state] and `path = "…"`, and run the pipeline once'
                if place is None
                else f"first: evermat pipeline run {self.config.file}",
            )

    def _request(self, kb: KnowledgeBase | None, program: PipelineProgram) -> Request:
        sources = self.config.sources
        if kb is None or self.command == "run":
            taken = [self._take(source) for source in sources]
            if kb is None:
                return first_request(program, taken)
            return next_request(kb, program, taken)
        with_changes = [source for source in sources if source.has_changes]
        return next_request(
            kb,
            program,
            [self._take(source) for source in sources if not source.has_changes],
            changes=self._changes(kb, with_changes),
            told={name for source in with_changes for name in source.predicates},
        )

    # -------------------------------------------------------------------- engine

    @cached_property
    def spark(self) -> SparkSession:
        """A session, started when it is first needed."""
        engine, name = self.config.engine, self.config.name
        with self.steps.step("start Spark") as step:
            session = self.stack.enter_context(spark_session(engine, name))
            master = str(session.conf.get("spark.master"))
            step.note = f"{session.version} on {master}"
            self.report.environment |= {"spark": session.version, "master": master}
        return session

    def _session(self) -> SparkSession | SessionToCome:
        """The session of who has started this, or one that may come."""
        if has_session():
            return self.spark
        settings = dict(self.config.engine.conf)
        return SessionToCome(lambda: self.spark, settings)

    @property
    def _is_on_spark(self) -> bool:
        """Whether facts are, or may be, on the cluster."""
        if self.config.engine.name != "spark":
            return False
        return self.command == "stream" or self._place.name != "driver"

    def _open(self) -> KnowledgeBase:
        engine: str | Engine = self.config.engine.name
        config = self.config
        if self.is_dry and not state_versions(config):
            config = replace(config, state=None)  # none is made
        spark: SparkSession | None = None
        if engine == "spark" and not self._is_on_spark:
            from evermat.engines.spark.driver_engine import (  # noqa: PLC0415  slow
                driver_engine,
            )

            engine = driver_engine(self._place.room)
        elif engine == "spark" and self._place.name == "distributed":
            engine = make_engine("spark", session=self._session(), driver_facts=0)
        elif engine == "spark":
            spark = self.spark
        with self.steps.step("open the knowledge base") as step, plain_spark_errors():
            kb = open_knowledge_base(config, engine, spark, self.pipeline.progress)
            step.note = self.config.state or "in memory"
        return kb

    @cached_property
    def _spark_intake(self) -> SparkIntake:
        intake = SparkIntake(self.spark)
        self.stack.callback(intake.release)
        return intake

    def _intake(self, source: Source, paths: Sequence[str]) -> Intake:
        """What reads a source: tasks, unless there is little to read."""
        if source.format in SPARK_FORMATS:
            return self._spark_intake
        if source.format == "database" or not self._is_on_spark:
            return LocalIntake()
        is_here = is_for_driver(source, paths, self.config, lambda: self.spark)
        return LocalIntake() if is_here else self._spark_intake

    # ------------------------------------------------------------------- sources

    def _take(
        self,
        source: Source,
        paths: Sequence[str] | None = None,
        change: str = "",
        at: int = 0,
    ) -> Taken:
        """Read a source, or change files of it; numbered ones in this process."""
        source = self._with_declared_names(source)
        paths = source.paths if paths is None else paths
        name = f"read source {source.name}" + (f" ({change})" if change else "")
        with self.steps.step(name) as step:
            words = [source.name, change, str(at or "")]
            file = "-".join(word for word in words if word) + ".parquet"
            place = f"{self.config.rejected}/run={self.report.run}/{file}"
            intake = LocalIntake() if at else self._intake(source, paths)
            taken = intake.take(source, paths, place)
            self._note_names(taken)
            self.report.add_source(taken, change=change)
            step.note = counted(taken.rows, "row")
            if taken.rejected:
                step.note += f", {taken.rejected:,} rejected"
            _require_few_rejected(taken, place)
        return taken

    def _with_declared_names(self, source: Source) -> Source:
        """Return the source with the rules' declarations for its predicates."""
        names, types = {}, {}
        for each in self.program.declarations:
            types[each.predicate] = tuple(each.column_types)
            if any(each.column_names):
                names[each.predicate] = each.column_names
        facts = tuple(
            replace(
                each,
                declared=names.get(each.predicate, ()),
                types=types.get(each.predicate, ()),
            )
            for each in source.facts
        )
        return replace(source, facts=facts)

    @cached_property
    def _names(self) -> ColumnNames:
        return ColumnNames({}, lambda: self.program.rules)

    def _note_names(self, taken: Taken) -> None:
        """Record the names of columns that become arguments, to detect swapped ones."""
        names = [column.name for column in taken.source.columns] or taken.columns
        for each in taken.source.facts:
            if names and not each.arguments and not each.declared:
                self._names.note(each.predicate, names)

    def _changes(self, kb: KnowledgeBase, sources: Iterable[Source]) -> RowChanges:
        """Return the contents of the change files that were not applied before."""
        changes, state = RowChanges(), lake_state(kb)
        for source in sources:
            entries = [] if state is None else state.ledger(source.name)
            with self.steps.step(f"look for changes of {source.name}") as step:
                files = change_files(source, Ledger(entries))
                step.note = f"{counted(len(files.new), 'new file')}, "
                step.note += f"{files.applied:,} applied before"
            done = changes.applied.setdefault(source.name, [])
            done += [change.entry() for change in files.new]
            if files.deletes_first:
                for kind, paths in files.steps():
                    changes.add(kind, self._take(source, paths, kind).facts)
                continue
            # Rows that are inserted and then deleted again are compared in this
            # process.
            steps = [
                (kind, self._take(source, paths, kind, at).facts)
                for at, (kind, paths) in enumerate(files.steps(), 1)
            ]
            insert, delete = net_changes(steps)
            changes.add("insert", insert)
            changes.add("delete", delete)
        return changes

    # -------------------------------------------------------------------- commit

    def _commit(self, kb: KnowledgeBase, request: Request) -> Change:
        word = "materialise" if self.command == "run" else "maintain"
        with self.steps.step(word) as step, plain_spark_errors():
            change = request.carried_out(kb)
            self.report.add_change(kb, change)
            self.report.version = version_of(kb)
            if self._place.name == "auto":
                self.report.place = kb.stats()["place"]
            self.report.work["jobs"] = jobs_of(kb)
            added, removed = change.total
            step.note = f"+{added:,} −{removed:,} facts"
        if self.pipeline.is_profiled:
            with self.steps.step("profile the rules"), plain_spark_errors():
                self.report.add_profile(kb.profile())
        return change

    def _plan(self, kb: KnowledgeBase, request: Request) -> None:
        """Compute what the request would change, and its cost."""
        with self.steps.step("plan") as step, plain_spark_errors():
            change = request.planned(kb)
            self.report.add_change(kb, change)
            added, removed = change.total
            step.note = f"+{added:,} −{removed:,} facts"

    def _check_expectations(self, kb: KnowledgeBase) -> None:
        """Check all expectations before publishing."""
        findings = []
        beside = self.config.rejected.rpartition("/")[0]
        folder = f"{beside}/quarantine/run={self.report.run}"
        for each in self.config.expectations:
            with self.steps.step(f"check {each.name}") as step, plain_spark_errors():
                finding = look_into(kb, each, folder)
                step.note = finding.note
                self.report.add_finding(finding)
                findings.append(finding)
        with naming("check expectations"):
            require_met(findings)

    def _publish(self, kb: KnowledgeBase, change: Change | None) -> None:
        options = dict(self.config.state_options) or None
        version = version_of(kb)
        publisher = Publisher(kb, change, version, lambda: self.spark, options)
        for output in self.config.outputs:
            if change is None and output.mode == "changes":
                continue  # streams have a feed of their own
            with self.steps.step(f"write output {output.name}") as step:
                rows = 0
                with plain_spark_errors():
                    for written in publisher.write(output):
                        self.report.add_output(written)
                        rows += written.rows
                step.note = counted(rows, "row")


def _what_happened(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return str(error) or repr(error)


def _told(sums: StreamReport) -> str:
    return (
        f"{sums.batches:,} {'batch' if sums.batches == 1 else 'batches'}, "
        f"{counted(sums.events, 'event')}, {sums.bad:,} bad, "
        f"+{sums.added:,} −{sums.removed:,} facts"
    )


@contextmanager
def _stopped_by_signals(trigger: str | float) -> Iterator[Event | None]:
    """Yield an event that a signal sets, so that a stream ends after a whole batch.

    A second signal is handled as usual, for users who cannot wait.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if trigger == "once" or not is_main:
        yield None
        return
    stop = Event()
    numbers = (signal.SIGINT, signal.SIGTERM)

    def end_after_batch(*_: object) -> None:
        stop.set()
        put_back()

    def put_back() -> None:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)

    before = [signal.signal(number, end_after_batch) for number in numbers]
    try:
        yield stop
    finally:
        put_back()


def _place(source: Source, name: str | None, position: int | None) -> str:
    """Return the file and line of a row."""
    if name is None:
        return ""
    if position is None:
        return f" ({name})"
    if source.format not in LINE_FORMATS:
        return f" ({name}, row {position + 1})"
    line = line_number(name, source.folder, position)
    byte = f"byte {position}"
    return f" ({name}, {byte if line is None else f'line {line}, {byte}'})"


def _require_few_rejected(taken: Taken, place: str) -> None:
    source = taken.source
    if source.limit.allows(taken.rejected, taken.rows):
        return
    first = taken.sample.slice(0, 1).to_pylist()[0]
    where = _place(source, first["file"], first["position"])
    column = f"column `{first['column']}`: " if first["column"] else ""
    raise RejectedRowsError(
        f"{taken.rejected:,} of {taken.rows:,} rows of source `{source.name}` are "
        f"wrong, and {source.limit} may be; one of them{where}: "
        f"{column}{first['reason']}",
        help=f"all of them are in `{place}`; correct them, or "
        "raise `max_rejected` of the source",
    )
