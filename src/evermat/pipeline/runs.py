"""Running a pipeline: read, check, commit, publish, report.

Every step has a name, which an error in it carries. Nothing is committed before all
sources are read and found good enough, and the commit is one transaction: whatever
goes wrong before it leaves the state as it was.
"""

from __future__ import annotations

import datetime
import signal
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version as version_of_package
from threading import Event
from time import perf_counter
from typing import TYPE_CHECKING, Literal

from evermat.lang.catalogue import GivenNames
from evermat.lang.syntax import Program
from evermat.pipeline.config import DATABASE_FORMATS, LINE_FORMATS
from evermat.pipeline.files import is_empty_folder, line_number
from evermat.pipeline.intake import LocalIntake
from evermat.pipeline.knowledge import open_knowledge_base, state_versions, version_of
from evermat.pipeline.locking import alone
from evermat.pipeline.output_checks import check_feeds, check_outputs
from evermat.pipeline.outputs import Publisher
from evermat.pipeline.problems import (
    OutputError,
    PipelineStateError,
    RejectedRowsError,
    naming,
    notes,
)
from evermat.pipeline.program import read_pipeline_program
from evermat.pipeline.report import FAILED, RunReport, write_report
from evermat.pipeline.requests import first_request, next_request
from evermat.pipeline.spark_intake import SparkIntake
from evermat.pipeline.spark_session import plain_spark_errors, spark_session
from evermat.pipeline.steps import Silent, Steps
from evermat.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from evermat.api import KnowledgeBase
    from evermat.maintenance.limits import Progress
    from evermat.pipeline.config import Config, Source
    from evermat.pipeline.intake import Intake, Taken
    from evermat.pipeline.program import PipelineProgram
    from evermat.pipeline.requests import Request
    from evermat.pipeline.steps import Watcher
    from evermat.pipeline.stream import StreamReport
    from evermat.results.change import Change

Command = Literal["run", "update", "stream"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that is over, and where its report is."""

    report: RunReport
    document: str
    page: str

    def __repr__(self) -> str:
        report = self.report
        what = f"{report.command} of {report.pipeline}"
        return f"<Finished {what}: version {report.version}, see {self.page}>"


@dataclass
class Pipeline:
    """A pipeline that is being run.

    Attributes:
        config: what to do.
        watcher: is told of every step.
        progress: is told of every round of a materialisation.
    """

    config: Config
    watcher: Watcher = field(default_factory=Silent)
    progress: Progress | None = None

    def __repr__(self) -> str:
        config = self.config
        parts = f"{counted(len(config.sources), 'source')}, "
        parts += counted(len(config.outputs), "output")
        return f"<Pipeline {config.name} on {config.engine.name}: {parts}>"

    def run(self) -> Finished:
        """Take all sources as they are, and make the state what follows from them.

        Raises:
            EvermatError: something is wrong; the state is as it was. A report has
                been written all the same.
        """
        return self._reported("run")

    def update(self) -> Finished:
        """Take what has changed since the last run, and maintain the state.

        Raises:
            EvermatError: as for `run`.
        """
        return self._reported("update")

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

    def _reported(self, command: Command) -> Finished:
        # One that is refused is no run, and has no report.
        with alone(self.config):
            return self._carried_out(command)

    def _carried_out(self, command: Command) -> Finished:
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
                work = _Work(self, command, report, steps, stack)
                if command == "stream":
                    work.follow()
                else:
                    work.do()
        except BaseException as error:
            report.status = FAILED
            report.error = "\n".join([_what_happened(error), *notes(error)])
            report.finish(steps.done, perf_counter() - start)
            try:
                write_report(report, self.config.reports)
            except OutputError as second:
                # What went wrong first is what people have to know.
                error.add_note(f" = report: {second.message}")
            raise
        report.finish(steps.done, perf_counter() - start)
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
    program: Program = field(default_factory=Program)

    @property
    def config(self) -> Config:
        return self.pipeline.config

    def do(self) -> None:
        """Do all of it."""
        with self.steps.step("read rules") as step:
            program = read_pipeline_program(self.config)
            self.program = program.program
            self.report.ignored_axioms = dict(program.ignored)
            step.note = counted(len(program.program.rules), "rule")
        has_state = self._has_state()
        # A state is not even begun before all sources are found good enough.
        kb = self._open() if has_state else None
        with naming("check the outputs"):
            check_outputs(self.config, program, kb)
            check_feeds(self.config, kb)
        request = self._request(kb, program)
        kb = self._open() if kb is None else kb
        self._publish(kb, self._commit(kb, request))

    def follow(self) -> None:
        """Maintain the state along a stream, then write what is written in full."""
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
        """Whether there is a state; a run can do without."""
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
        told = [source for source in sources if source.has_changes]
        return next_request(
            kb,
            program,
            [self._take(source) for source in sources if not source.has_changes],
            insert=self._changes("insert"),
            delete=self._changes("delete"),
            told={name for source in told for name in source.predicates},
        )

    # -------------------------------------------------------------------- engine

    @cached_property
    def spark(self) -> SparkSession:
        """A session, started when it is first needed."""
        engine, name = self.config.engine, self.config.name
        with self.steps.step("start Spark") as step:
            session = self.stack.enter_context(spark_session(engine, name))
            master = str(session.sparkContext.master)
            step.note = f"{session.version} on {master}"
            self.report.environment |= {"spark": session.version, "master": master}
        return session

    def _open(self) -> KnowledgeBase:
        spark = self.spark if self.config.engine.name == "spark" else None
        with self.steps.step("open the knowledge base") as step, plain_spark_errors():
            kb = open_knowledge_base(self.config, spark, self.pipeline.progress)
            step.note = self.config.state or "in memory"
        return kb

    @cached_property
    def _spark_intake(self) -> SparkIntake:
        intake = SparkIntake(self.spark)
        self.stack.callback(intake.release)
        return intake

    def _intake(self, source: Source) -> Intake:
        needs_spark = source.format in DATABASE_FORMATS
        if self.config.engine.name == "spark" or needs_spark:
            return self._spark_intake
        return LocalIntake()

    # ------------------------------------------------------------------- sources

    def _take(
        self, source: Source, paths: Sequence[str] | None = None, change: str = ""
    ) -> Taken:
        source = self._with_declared_names(source)
        intake = self._intake(source)
        name = f"read source {source.name}" + (f" ({change})" if change else "")
        with self.steps.step(name) as step:
            folder = f"{self.config.rejected}/run={self.report.run}"
            taken = intake.take(
                source, source.paths if paths is None else paths, folder
            )
            self._note_names(taken)
            self.report.add_source(taken, change=change)
            step.note = counted(taken.rows, "row")
            if taken.rejected:
                step.note += f", {taken.rejected:,} rejected"
            _require_few_rejected(taken, folder)
        return taken

    def _with_declared_names(self, source: Source) -> Source:
        """The source, with what the rules declare about the predicates of its facts."""
        declared = {
            each.predicate: each.column_names
            for each in self.program.declarations
            if any(each.column_names)
        }
        facts = tuple(
            replace(each, declared=declared.get(each.predicate, ()))
            for each in source.facts
        )
        return replace(source, facts=facts)

    @cached_property
    def _names(self) -> GivenNames:
        return GivenNames({}, lambda: self.program.rules)

    def _note_names(self, taken: Taken) -> None:
        """Notice columns that are swapped, where they become arguments as they are."""
        names = [column.name for column in taken.source.columns] or taken.columns
        for each in taken.source.facts:
            if names and not each.arguments and not each.declared:
                self._names.note(each.predicate, names)

    def _changes(self, change: Literal["insert", "delete"]) -> list[Taken]:
        found = []
        for source in self.config.sources:
            places = source.insert if change == "insert" else source.delete
            # A folder that is empty says that nothing has changed.
            paths = [place for place in places if not is_empty_folder(place)]
            if paths:
                found.append(self._take(source, paths, change))
        return found

    # -------------------------------------------------------------------- commit

    def _commit(self, kb: KnowledgeBase, request: Request) -> Change:
        word = "materialise" if self.command == "run" else "maintain"
        with self.steps.step(word) as step, plain_spark_errors():
            change = request.carried_out(kb)
            self.report.add_change(kb, change)
            self.report.version = version_of(kb)
            came, left = change.total
            step.note = f"+{came:,} −{left:,} facts"
        return change

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
    """An event that a signal sets, so that a stream ends after a whole batch.

    Who cannot wait for that sends another one, which does what it always does.
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
    """Where a row is, as people look for it: in which file, on which line."""
    if name is None:
        return ""
    if position is None:
        return f" ({name})"
    if source.format not in LINE_FORMATS:
        return f" ({name}, row {position + 1})"
    line = line_number(name, source.folder, position)
    byte = f"byte {position}"
    return f" ({name}, {byte if line is None else f'line {line}, {byte}'})"


def _require_few_rejected(taken: Taken, folder: str) -> None:
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
        help=f"all of them are in `{folder}/{source.name}.parquet`; correct them, or "
        "raise `max_rejected` of the source",
    )
