"""The types of what constructors take besides objects: mappings with the keys of a file, and the unions of all forms.

They exist for editors and type checkers, which complete `expected={"con…` and report a misspelt key. At run time the
reader checks the same, so nothing here is looked at.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from proctor.base.json_data import Json

if TYPE_CHECKING:
    from proctor.cases.suite import AttachedFile, Case, EvaluatorSpec, Expected, ExpectedCall, Keywords, ToolMock, Turn
    from proctor.evaluators.declaration import ScoreSettings
    from proctor.evaluators.evaluation import Evaluation
    from proctor.judging.judge import Judge


class ContainsDict(TypedDict, total=False):
    """`contains` of an expectation."""

    any: str | Sequence[str]
    all: str | Sequence[str]


ArgumentLike: TypeAlias = "Callable[[Any], Any] | object"
"""An argument of an expected call: a literal, a `$` form, a pattern, a function, a type, `...` or any object."""


class _CallName(TypedDict):
    name: str


class CallDict(_CallName, total=False):
    """An expected tool call."""

    args: Mapping[str, ArgumentLike] | None
    count: int
    substring: bool
    extra_args: bool
    result: Json
    or_earlier: bool


ContainsLike: TypeAlias = "str | Sequence[str] | ContainsDict | Keywords"
CallLike: TypeAlias = "str | CallDict | ExpectedCall"


class ExpectedDict(TypedDict, total=False):
    """What a good answer looks like."""

    output: Json
    contains: ContainsLike | None
    tools: Sequence[CallLike] | None
    context: Sequence[str] | None
    state: Mapping[str, Any] | None


ExpectedLike: TypeAlias = "Expected | ExpectedDict | str | int | float | bool | Sequence[Any]"

Verdict: TypeAlias = "Evaluation | bool | int | float | None"
"""What an evaluator returns; `None` means that there was nothing to compare."""
Judgement: TypeAlias = "Verdict | Awaitable[Verdict]"
# No `Callable[..., X]` here: pyright would then not infer the types of the parameters of a lambda.
_Function: TypeAlias = (
    "Callable[[Any], Judgement] | Callable[[Any, Any], Judgement] | Callable[[Any, Any, Any], Judgement]"
)
EvaluatorLike: TypeAlias = (
    "_Function | type[ScoreSettings] | str | Mapping[str, Mapping[str, Json]] | EvaluatorSpec | EllipsisType"
)
JudgeLike: TypeAlias = "str | Mapping[str, Json] | Judge | Callable[[str], str] | Callable[[str], Awaitable[str]]"
AgentLike: TypeAlias = "Callable[[Any], Any] | object"


class FileDict(TypedDict, total=False):
    """A file that is sent with a turn."""

    path: str
    url: str
    type: str
    description: str
    pages: Sequence[int]
    sheet: str
    range: str
    cache: bool


FileLike: TypeAlias = "str | FileDict | AttachedFile"


class _TurnInput(TypedDict):
    input: Json


class TurnDict(_TurnInput, total=False):
    """One message and what is expected back."""

    expected: ExpectedLike | None
    evaluators: Sequence[EvaluatorLike]
    retrieval_context: Sequence[str]
    files: Sequence[FileLike]
    metadata: Mapping[str, Json]


TurnLike: TypeAlias = "str | TurnDict | Turn"


class MockDict(TypedDict, total=False):
    """What a mocked tool returns."""

    args: Mapping[str, ArgumentLike] | None
    result: Json
    error: str
    delay: float
    times: int


MockLike: TypeAlias = "MockDict | ToolMock | Sequence[MockDict | ToolMock]"


class _ScenarioParts(TypedDict):
    start: str
    plan: str


class ScenarioDict(_ScenarioParts, total=False):
    """A simulated user."""

    persona: Json
    max_turns: int
    stop: str
    model: Json
    instructions: str
    show_tools: bool


class _QuarantineParts(TypedDict):
    reason: str
    until: str


class QuarantineDict(_QuarantineParts, total=False):
    """Why a case does not count, and until when."""

    owner: str


class CaseDict(TypedDict, total=False):
    """One case."""

    id: str
    input: Json
    expected: ExpectedLike | None
    turns: Sequence[TurnLike]
    scenario: ScenarioDict
    evaluators: Sequence[EvaluatorLike]
    implied: bool
    description: str
    tags: Sequence[str]
    metadata: Mapping[str, Json]
    inputs: Mapping[str, Json]
    state: Mapping[str, Json]
    final_state: Mapping[str, Any]
    mocks: Mapping[str, MockLike]
    retrieval_context: Sequence[str]
    files: Sequence[FileLike]
    repeat: int
    timeout: float
    skip: str
    quarantine: QuarantineDict


class CriteriaDict(TypedDict, total=False):
    """How outcomes become the verdict."""

    trials: Literal["all", "any", "majority", "mean"]
    threshold: float
    pct: float
    arms: Literal["last", "all"]


class SettingsDict(TypedDict, total=False):
    """How a suite is run."""

    repeat: int
    parallel: int
    timeout: float
    evaluator_timeout: float
    retries: int
    retry_seconds: float
    max_reply_bytes: int
    side_effects: bool


class _WaiverParts(TypedDict):
    mutant: str
    reason: str


class WaiverDict(_WaiverParts, total=False):
    """A kind of mutant that need not be caught."""

    case: str


class SuiteDict(TypedDict, total=False):
    """A suite, as a native file has it."""

    name: str
    description: str
    agent: AgentLike
    arms: Mapping[str, AgentLike]
    judge: JudgeLike
    rerun_tools: Json
    depends_on: Sequence[str]
    allow_files_from: Sequence[str]
    evaluators: Sequence[EvaluatorLike]
    criteria: CriteriaDict
    settings: SettingsDict
    waivers: Sequence[WaiverDict]
    cases: Sequence[CaseDict | Case]
