"""Chooses the judge. This is the only module that knows the order of precedence.

A judge can be named in several places. The first of these that names one wins:

    --judge         the command line, or `judge=` of a call from Python
    evaluator       the evaluator itself: its `model`, or the `client` that asks the model
    suite           the key `judge` of the suite's file
    configuration   `judge` in proctor.toml
    PROCTOR_JUDGE   the environment
    default         the rule-based judge

An evaluator may also have options without a judge (`model: {samples: 3}`, or `samples: 3`): they apply to the judge
that is chosen. Everywhere else, options without a model are a mistake. With `--fast`, everything that needs a model is
skipped, so a model that is not available is not an error.

`choose_judge` is called by the plan (once per evaluator that asks a judge), for the simulated user of a scenario, by
`doctor` and `calibrate`, and by `JudgeSession` for an evaluator that Python code calls directly.
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
    """In Python: the client for the model that `judge` names."""
    samples: Any = None
    """How often an evaluator asks its judge, whichever that is; checked when it is read."""

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
    """`--fast`, `--proctor-fast`: skip everything that needs a model."""


NO_SOURCES = JudgeSources()


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """The chosen judge, and the place that named it."""

    panel: PanelSpec
    """The judges. Without members only if they are skipped and could not be read."""
    written: WrittenJudge
    """The judge as written in the place that won."""
    own: WrittenJudge | None
    """The evaluator's own settings of its judge."""
    needs_model: bool
    is_skipped: bool = False
    """Whether it is skipped because it needs a model."""

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
        """For fingerprints: what may change the scores, such as the version of the rules; no keys and no timeouts."""
        return self.panel.identity


class InvalidJudge(UsageError):
    """A named judge is not valid; `written` says where, and `key` which key of an evaluator is wrong."""

    def __init__(self, message: str, written: WrittenJudge, key: str = "model") -> None:
        super().__init__(message)
        self.written = written
        self.key = key


def choose_judge(sources: JudgeSources, own: WrittenJudge | None = None) -> JudgeChoice:
    """The judge of an evaluator with the settings `own`; raises `InvalidJudge` if the judge that wins is not valid."""
    written = first_source(sources, own)
    try:
        panel = _with_options(_read(written), own)
    except InvalidJudge as error:
        if not sources.skip_models or error.written is not written or error.key != "model":
            raise
        # It names something other than the rules, so it would be a model, which is skipped.
        return JudgeChoice(PanelSpec(), written, own, needs_model=True, is_skipped=True)
    is_skipped = sources.skip_models and panel.needs_model
    return JudgeChoice(panel, written, own, panel.needs_model, is_skipped)


def first_source(sources: JudgeSources, own: WrittenJudge | None = None) -> WrittenJudge:
    """The judge in the first place that names one, valid or not."""
    evaluator = own if own is not None and own.names_judge else None
    places = (sources.command_line, evaluator, sources.suite, sources.configuration, sources.environment)
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
    """The panel with the options that the evaluator sets."""
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
    """The judge settings of an evaluator: its `model`, `client` and `samples`; `None` if it has none."""
    model, client, samples = (getattr(evaluator, name, None) for name in ("model", "client", "samples"))
    if model is None and client is None and samples is None:
        return None
    return WrittenJudge(model, EVALUATOR, client=client, samples=samples)


def environment_sources() -> JudgeSources:
    """The judge in the environment, the only source for an evaluator that Python code calls directly."""
    name = os.environ.get(VARIABLE)
    environment = WrittenJudge(name, VARIABLE) if name else None
    return JudgeSources(environment=environment, skip_models=os.environ.get(FAST_VARIABLE) == "1")


UNRECORDED_OPTIONS = frozenset(
    "api_key api_key_env timeout concurrency requests_per_minute tokens_per_minute parallelism_limit".split()
)
"""Options that do not change the scores of a judge."""


def judge_record(written: Any) -> Json:
    """A judge as the record of a run stores it: as it was written, without keys."""
    if written is None:
        return None
    if isinstance(written, Mapping):
        return {name: to_json(value) for name, value in written.items() if name not in UNRECORDED_OPTIONS}
    if isinstance(written, (str, list, tuple)):
        return to_json(written)
    return str(getattr(written, "name", None) or type(written).__qualname__)
