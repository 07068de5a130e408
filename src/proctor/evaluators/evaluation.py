"""What evaluators are given and give back, how any callable is called as one, and how they read and quote values."""

from __future__ import annotations

import functools
import inspect
import json
import math
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeAlias

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.json_data import UNSET, Json, Unset, plain, show
from proctor.base.threads import call_in_thread, is_async
from proctor.cases.suite import ExpectedCall, Keywords, NamedData, Turn


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The result of one evaluator on one answer."""

    score: float
    """Between 0 and 1; higher is better."""
    reasoning: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    passed: bool | None = None
    """The evaluator's own verdict, whatever the score and the threshold; `None` leaves it to them."""


Verdict: TypeAlias = Evaluation | bool | int | float | None
"""What an evaluator may return. `None`: there was nothing to compare."""


class NothingToCompare(Exception):
    """Raised by an evaluator that lacks what it compares with; says what is missing. The outcome is `skipped`."""


class EvaluationPending(Exception):
    """Raised by an evaluator whose verdict a person or an agent has yet to give. The outcome is `pending`."""

    def __init__(self, reason: str = "", *, criteria: str = "") -> None:
        super().__init__(reason)
        self.criteria = criteria
        """What the person or agent that gives the verdict has to look for."""


class Evaluator(Protocol):
    """Any callable, sync or async, that takes an `Evaluable` (and, if it wants the trace, `trace=`).

    It may also have these attributes: `default_threshold` (0.5), `scope` ("turn" or "case"), `version`, `needs_judge`.
    """

    def __call__(self, evaluable: Evaluable) -> Verdict | Awaitable[Verdict]: ...


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn and its answer, as an evaluator of the whole conversation sees it."""

    turn: Turn
    reply: Reply


@dataclass(frozen=True, slots=True)
class Evaluable:
    """What an evaluator sees of one turn or of a whole trial."""

    __test__: ClassVar[bool] = False
    """It goes by the name of `TestCase` as well, which pytest would take for tests."""
    eval_input: Sequence[NamedData] = ()
    """A list once it is made, whatever it was made from: named values, `{"name": ..., "value": ...}`, or one value."""
    eval_output: Sequence[NamedData] = ()
    expectation: Json | Unset = UNSET
    """The reference answer. `UNSET`: none was given; `None`: the expected answer is nothing."""
    eval_metadata: Mapping[str, Json] | None = None
    description: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    expected_tool_calls: tuple[ExpectedCall, ...] | None = None
    """`None` asserts nothing; an empty tuple asserts that no tool is called."""
    keywords: Keywords | None = None
    context: tuple[str, ...] | None = None
    retrieval_context: tuple[str, ...] | None = None
    turns: tuple[Exchange, ...] = ()
    """The conversation so far, this turn included."""
    usage: Usage | None = None
    duration_ms: float | None = None
    state: Mapping[str, Json] | None = None
    expected_state: Mapping[str, Json] | None = None
    turn_metadata: Mapping[str, Json] = field(default_factory=dict)
    trace: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "eval_input", _named_values(self.eval_input, "input"))
        object.__setattr__(self, "eval_output", _named_values(self.eval_output, "output"))

    @property
    def input(self) -> Json:
        return collapse(self.eval_input)

    @property
    def output(self) -> Json:
        return collapse(self.eval_output)

    @property
    def expected_output(self) -> Json | Unset:
        return self.expectation


def _named_values(given: Any, name: str) -> list[NamedData]:
    """The values of one side as a list; a value that is no list is the only one, under the usual name."""
    if given is None:
        return []
    if not isinstance(given, (list, tuple)):
        return [given] if isinstance(given, NamedData) else [NamedData(name, given)]
    return [
        item if isinstance(item, NamedData) else _named_value(item, f"eval_{name}[{i}]") for i, item in enumerate(given)
    ]


def _named_value(item: Any, place: str) -> NamedData:
    if isinstance(item, Mapping) and item.keys() == {"name", "value"} and isinstance(item["name"], str):
        return NamedData(item["name"], item["value"])
    if hasattr(item, "name") and hasattr(item, "value"):
        return NamedData(str(item.name), item.value)
    raise ValueError(f'{place} must be NamedData or {{"name": ..., "value": ...}}, not {show(item, 80)}')


def _taking_expected_output(make: Any) -> Any:
    """The constructor of `Evaluable` under pixie's other name for the expectation."""

    @functools.wraps(make)
    def init(self: Any, *args: Any, expected_output: Any = UNSET, **named: Any) -> None:
        if expected_output is not UNSET:
            if named.get("expectation", UNSET) is not UNSET:
                raise TypeError("expectation and expected_output are the same; give one of them")
            named["expectation"] = expected_output
        make(self, *args, **named)

    return init


Evaluable.__init__ = _taking_expected_output(Evaluable.__init__)  # type: ignore[method-assign]


def collapse(items: Sequence[NamedData]) -> Json:
    """Nothing for none, the value itself for one, an object by name for several."""
    if not items:
        return None
    if len(items) == 1:
        return items[0].value
    return {item.name: item.value for item in items}


UNCLAMPED = "unclamped_score"
"""The detail that keeps a score which was out of range."""


class BadVerdict(Exception):
    """An evaluator returned something that is no score: the instrument broke, so the outcome is `error`."""


def takes_trace(function: Callable[..., Any]) -> bool:
    """Whether it accepts `trace=`."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(p.kind is p.VAR_KEYWORD or (p.name == "trace" and p.kind is not p.POSITIONAL_ONLY) for p in parameters)


async def evaluate(evaluator: Callable[..., Any], evaluable: Evaluable, *, trace: Any = None) -> Evaluation | None:
    """Run one evaluator on one evaluable; sync ones run in a thread. `None` means there was nothing to compare."""
    extra = {"trace": evaluable.trace if trace is None else trace} if takes_trace(evaluator) else {}
    if is_async(evaluator):
        verdict = await evaluator(evaluable, **extra)
    else:
        verdict = await call_in_thread(evaluator, evaluable, **extra)
        if inspect.isawaitable(verdict):
            verdict = await verdict
    evaluation = read_verdict(verdict)
    if evaluation is not None and UNCLAMPED in evaluation.details:
        warnings.warn(clamp_notice(evaluation), RuntimeWarning, stacklevel=2)
    return evaluation


def clamp_notice(evaluation: Evaluation) -> str:
    """What to tell the author of an evaluator whose score was out of range."""
    return f"an evaluator returned the score {evaluation.details[UNCLAMPED]:g}; clamped to {evaluation.score:g}"


def read_verdict(verdict: Any) -> Evaluation | None:
    """The Evaluation an evaluator means: a bool is 1 or 0, a number is a score, out-of-range scores are clamped."""
    if verdict is None:
        return None
    if isinstance(verdict, Evaluation):
        return _in_range(verdict)
    if isinstance(verdict, (bool, int, float)) or _is_number(verdict):
        return _in_range(Evaluation(float(verdict)))
    if _is_evaluation_like(verdict):
        details = dict(getattr(verdict, "details", None) or {})
        passed = getattr(verdict, "passed", None)
        own = passed if isinstance(passed, bool) else None
        return _in_range(Evaluation(verdict.score, str(verdict.reasoning), details, own))
    raise BadVerdict(
        f"returned {type(verdict).__name__}; an evaluator returns an Evaluation, a bool, a number, or None to skip"
    )


def _is_number(verdict: Any) -> bool:
    """Numbers of other libraries (numpy, Decimal), which say so through `__float__`; text and sequences do not."""
    return hasattr(verdict, "__float__") and not hasattr(verdict, "__len__")


def _is_evaluation_like(verdict: Any) -> bool:
    return hasattr(verdict, "score") and hasattr(verdict, "reasoning")


def _in_range(evaluation: Evaluation) -> Evaluation:
    score: Any = evaluation.score
    if evaluation.passed is not None and not isinstance(evaluation.passed, bool):
        raise BadVerdict(f"returned passed={evaluation.passed!r}; it is True, False or None")
    if isinstance(score, str) or not hasattr(score, "__float__"):
        raise BadVerdict(f"returned the score {score!r}; a score is a number between 0 and 1")
    number = float(score)
    if not math.isfinite(number):
        shown = "NaN" if math.isnan(number) else "an infinite score"
        raise BadVerdict(f"returned {shown}; a score is a number between 0 and 1")
    if 0.0 <= number <= 1.0:
        return evaluation if type(score) is float else replace(evaluation, score=number)
    clamped = min(1.0, max(0.0, number))
    return replace(evaluation, score=clamped, details={**evaluation.details, UNCLAMPED: number})


SHOWN = 80
"""How much of a value a person is shown in a reason."""


def expectation_of(evaluable: Evaluable, evaluator: str) -> Json:
    """What the case expects; without it there is no score, neither a good nor a bad one."""
    expectation = evaluable.expectation
    if expectation is UNSET:
        raise NothingToCompare(f"{evaluator} compares with an expectation and the case has none")
    return expectation


def texts_of(evaluable: Evaluable, evaluator: str) -> tuple[str, str]:
    """The expectation and the output, both as text."""
    return text_of(expectation_of(evaluable, evaluator)), text_of(evaluable.output)


def answers_of(evaluable: Evaluable) -> str:
    """Everything that the agent said in a conversation so far, an answer after the other."""
    replies = [exchange.reply for exchange in evaluable.turns]
    if len(replies) < 2:
        return text_of(evaluable.output)
    answers = (
        collapse(reply.outputs) if reply.outputs else reply.text if reply.structured is None else reply.structured
        for reply in replies
    )
    return "\n".join(map(text_of, answers))


def text_of(value: Any) -> str:
    """A value as an evaluator of text sees it: nothing is the empty text, data is its JSON."""
    if type(value) is str:
        return value
    return "" if value is None else show(plain_of(value))


def data_of(value: Any) -> Json:
    """A value as an evaluator of data sees it: text that holds a JSON object or list counts as that."""
    return embedded(value) if isinstance(value, str) else plain_of(value)


def plain_of(value: Any) -> Json:
    """A value as plain data; what nests beyond all use cannot be compared, which is no verdict on the agent."""
    try:
        return plain(value)
    except RecursionError:
        raise ValueError("a value is nested too deeply to be compared") from None


def embedded(value: Json) -> Json:
    """The object or list that a text holds as JSON; any other value as it is."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return parse_json(value)
    except ValueError:
        return value


def parse_json(text: str) -> Json:
    """Strict JSON: `NaN` and nesting beyond any use are refused with `ValueError` like every other mistake."""
    try:
        return plain(json.loads(text, parse_constant=_refuse))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def quote(value: Any, limit: int = SHOWN) -> str:
    """A value in a sentence, cut short, with the white space in it made visible."""
    if value is None:
        return "nothing"
    if not isinstance(value, str):
        return show(plain(value), limit)
    cut = value if len(value) <= limit else f"{value[: limit - 1]}…"
    return json.dumps(cut, ensure_ascii=False)


def compared(expected: Any, got: Any) -> str:
    """The part of a reason that every comparison shares."""
    return f"expected {quote(expected)}, got {quote(got)}"


def _refuse(constant: str) -> Json:
    raise ValueError(f"{constant} is not JSON")


def require_flags(**flags: Any) -> None:
    """Refuse `"yes"` and `1` where true or false is meant."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ValueError(f"{name} must be true or false, not {flag!r}")


def require_choice(name: str, choice: Any, options: tuple[str, ...]) -> None:
    """Refuse a name that is not on the list."""
    if choice not in options:
        raise ValueError(f"{name} must be one of {', '.join(options)}, not {choice!r}")


def require_number(name: str, number: Any, *, least: float = 0.0, most: float = float("inf")) -> None:
    """Refuse what is no number within the bounds; NaN is within none."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not least <= number <= most:
        bounds = f"of at least {least:g}" if most == float("inf") else f"between {least:g} and {most:g}"
        raise ValueError(f"{name} must be a number {bounds}, not {number!r}")


def require_text(name: str, value: Any) -> None:
    """Refuse a blank text; `None` means that none is given."""
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ValueError(f"{name} must be a text that says something, not {value!r}")


def require_whole(name: str, number: Any, *, least: int) -> None:
    """Refuse what is no whole number of at least `least`."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, not {number!r}")
