"""Chooses the judge. This is the only module that knows the order of precedence.

A judge can be named in several places. The first of these that names one wins:

    --judge         the command line, or `judge=` of a call from Python
    evaluator       the evaluator itself: its `model`, or the `client` that asks the model
    suite           the key `judge` of the suite's file
    configuration   `judge` in proctor.toml
    PROCTOR_JUDGE   the environment
    default         the rule-based judge

An evaluator may also have options and name no judge (`model: {samples: 3}`, or `samples: 3`): they apply to whoever
judges. Everywhere else options without a model are a mistake. With `--fast`, whatever needs a model is left out, so
that a model that cannot be had is no problem then.

`choose_judge` is called by the plan (once for each evaluator that asks a judge), for the simulated user of a scenario,
by `doctor` and `calibrate`, and by `JudgeSession` for an evaluator that Python calls directly.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from proctor.base.errors import UsageError
from proctor.base.json_data import Json, parse_inline_json, to_json
from proctor.base.positions import Position
from proctor.judging.client import model_of_client
from proctor.judging.judge import RULES
from proctor.judging.specs import JudgeSpec, PanelSpec, names_judge, read_panel

COMMAND_LINE = "--judge"
EVALUATOR = "evaluator"
SUITE = "suite"
CONFIGURATION = "configuration"
VARIABLE = "PROCTOR_JUDGE"
DEFAULT = "default"
FAST_VARIABLE = "PROCTOR_FAST"
"""Set by pytest's `--proctor-fast` for evaluators that tests call directly."""


@dataclass(frozen=True, slots=True)
class WrittenJudge:
    """A judge as it was written, and where."""

    judge: Any
    """Text, an object of options, or in Python a Judge or a Panel; `None` if an evaluator has only `samples`."""
    origin: str
    at: Position | None = None
    """The file and line that name it."""
    client: Any = field(default=None, repr=False)
    """From Python: the client that asks the model that `judge` names."""
    samples: Any = None
    """How often an evaluator wants its judge to be asked, whoever that is; checked when it is read."""

    @property
    def names_judge(self) -> bool:
        return self.client is not None or (self.judge is not None and names_judge(self.judge))


@dataclass(frozen=True, slots=True)
class JudgeSources:
    """Every place that may name a judge for all evaluators of a suite, each as it was written."""

    command_line: WrittenJudge | None = None
    suite: WrittenJudge | None = None
    configuration: WrittenJudge | None = None
    environment: WrittenJudge | None = None
    skip_models: bool = False
    """`--fast`, `--proctor-fast`: whatever needs a model is left out."""


NO_SOURCES = JudgeSources()


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The chosen judge, and the place that named it."""

    panel: PanelSpec
    """The judges. Without members only if they are left out and could not be read."""
    written: WrittenJudge
    """What was written that won."""
    own: WrittenJudge | None
    """What the evaluator itself says about its judge."""
    needs_model: bool
    is_skipped: bool = False
    """Whether it is not asked because what needs a model is left out."""

    @property
    def origin(self) -> str:
        """`--judge`, `evaluator`, `suite`, `configuration`, `PROCTOR_JUDGE` or `default`."""
        return self.written.origin

    @property
    def at(self) -> Position | None:
        """The file and line that name the judge."""
        return self.written.at

    @property
    def identity(self) -> Json:
        """For fingerprints: what may change the verdicts, with the version of the rules; no key and no timeout."""
        return self.panel.identity


class InvalidJudge(UsageError):
    """A judge that is named and not valid; `written` says where, and `key` which key of an evaluator is wrong."""

    def __init__(self, message: str, written: WrittenJudge, key: str = "model") -> None:
        super().__init__(message)
        self.written = written
        self.key = key


def choose_judge(sources: JudgeSources, own: WrittenJudge | None = None) -> JudgeChoice:
    """The judge of an evaluator that says `own` about it; raises `InvalidJudge` if the one that wins is not valid."""
    written = first_source(sources, own)
    try:
        panel = _with_options(_read(written), own)
    except InvalidJudge as error:
        if not sources.skip_models or error.written is not written or error.key != "model":
            raise
        # It names something other than the rules, so it would be a model, which is left out.
        return JudgeChoice(PanelSpec(), written, own, needs_model=True, is_skipped=True)
    is_left_out = sources.skip_models and panel.needs_model
    return JudgeChoice(panel, written, own, panel.needs_model, is_left_out)


def first_source(sources: JudgeSources, own: WrittenJudge | None = None) -> WrittenJudge:
    """What the first place that names a judge says, valid or not."""
    named = own if own is not None and own.names_judge else None
    places = (sources.command_line, named, sources.suite, sources.configuration, sources.environment)
    return next((place for place in places if place is not None), WrittenJudge(RULES, DEFAULT))


def _read(written: WrittenJudge) -> PanelSpec:
    try:
        if written.client is not None:
            return PanelSpec((JudgeSpec(model_of_client(written.client, written.judge)),))
        judge = parse_inline_json(written.judge, f"{written.origin}: the judge")
        if not names_judge(judge):
            raise UsageError("has options but no judge; name one with the key model")
        return read_panel(judge)
    except UsageError as error:
        raise InvalidJudge(str(error), written, "model" if written.client is None else "client") from None


def _with_options(panel: PanelSpec, own: WrittenJudge | None) -> PanelSpec:
    """The panel with what the evaluator says about it beyond its name."""
    if own is None:
        return panel
    if own.judge is not None and not own.names_judge:
        try:
            panel = replace(panel, samples=read_panel(own.judge).samples)
        except UsageError as error:
            raise InvalidJudge(str(error), own) from None
    if own.samples is None:
        return panel
    if isinstance(own.samples, bool) or not isinstance(own.samples, int) or own.samples < 1:
        message = f"samples must be a whole number of at least 1, not {own.samples!r}"
        raise InvalidJudge(message, own, "samples")
    return replace(panel, samples=own.samples)


def own_judge(evaluator: Any) -> WrittenJudge | None:
    """What an evaluator that asks a judge says about it: its `model`, `client` and `samples`; `None` if nothing."""
    model, client, samples = (getattr(evaluator, name, None) for name in ("model", "client", "samples"))
    if model is None and client is None and samples is None:
        return None
    return WrittenJudge(model, EVALUATOR, client=client, samples=samples)


def environment_sources() -> JudgeSources:
    """What the environment says: all there is for an evaluator that Python calls directly."""
    named = os.environ.get(VARIABLE)
    environment = WrittenJudge(named, VARIABLE) if named else None
    return JudgeSources(environment=environment, skip_models=os.environ.get(FAST_VARIABLE) == "1")


NOT_IDENTIFYING = frozenset(
    "api_key api_key_env timeout concurrency requests_per_minute tokens_per_minute parallelism_limit".split()
)
"""Options that do not make another judge of a judge."""


def judge_record(written: Any) -> Json:
    """A judge as the record of a run stores it: as it was written, without keys."""
    if written is None:
        return None
    if isinstance(written, Mapping):
        return {name: to_json(value) for name, value in written.items() if name not in NOT_IDENTIFYING}
    if isinstance(written, (str, list, tuple)):
        return to_json(written)
    return str(getattr(written, "name", None) or type(written).__qualname__)
