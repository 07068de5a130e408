"""The native format as pydantic models, from which the JSON Schema that editors use is generated.

Reading does not go through these: the reader gives better messages and costs no import. A test holds the two together.
`null` means the same as leaving a key out, in both.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import TypeAliasType

from proctor.cases.formats.native.parts import MUTANT_KINDS

Json = Any
Seconds = Field(default=None, gt=0)
OWN = "Keys that begin with x- are anybody's own."

Filled = Annotated[str, Field(pattern=r"\S")]
"""Text with something in it."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _OpenModel(BaseModel):
    """Takes `x-` keys besides its own."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"patternProperties": {"^x-": {"description": OWN}}})


class EvaluatorOptions(BaseModel):
    """How an evaluator's score is used; any other key is an argument of the evaluator."""

    model_config = ConfigDict(extra="allow")

    threshold: float | None = Field(default=None, ge=0, le=1, description="The least score that passes.")
    name: Filled | None = Field(default=None, description="What reports call it.")
    report_only: bool | None = Field(default=False, description="Report the score, but do not let it decide the case.")
    gate: bool | None = Field(default=True, deprecated="Use `report_only`, which means the opposite.")
    scope: Literal["turn", "case"] | None = Field(default=None, description="Each turn, or the whole conversation.")
    output: Filled | None = Field(default=None, description="The named output it looks at.")
    timeout: float | None = Field(default=None, gt=0, description="Seconds it may take.")
    output_path: Filled | None = Field(default=None, description="Where in an output of data it looks: order.total")
    retries: int | None = Field(default=0, ge=0, description="How often it is asked again when it breaks.")
    optional: bool | None = Field(default=False, description="Whether it is skipped when it breaks.")


_ONE_EVALUATOR: dict[str, Any] = {"propertyNames": {"pattern": r"\S", "not": {"const": "..."}}}
_NOT_INHERITED: dict[str, Any] = {"items": {"not": {"const": "..."}}}
EvaluatorName = TypeAliasType("EvaluatorName", Filled)
EvaluatorWithOptions = TypeAliasType(
    "EvaluatorWithOptions",
    Annotated[dict[str, EvaluatorOptions | None], Field(min_length=1, max_length=1, json_schema_extra=_ONE_EVALUATOR)],
)
EvaluatorEntry = EvaluatorName | EvaluatorWithOptions


class ExpectedTool(_Model):
    """A tool call the agent is expected to make."""

    name: Filled
    args: dict[str, Json] | None = Field(
        default=None, description='Arguments: literals, or matchers such as {"$regex": "A-[0-9]+"}.'
    )
    count: int | None = Field(default=1, ge=1, description="At least this many such calls.")
    substring: bool | None = Field(default=False, description="The tool's name need only contain `name`.")
    extra_args: bool | None = Field(default=False, description="Arguments that are not listed are allowed.")
    result: Json = None


class ContainsWords(_Model):
    """Words the answer must mention: at least one."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"type": "array", "minItems": 1}}} for name in ("any", "all")
            ]
        },
    )

    any: list[Filled] | None = None
    all: list[Filled] | None = None


class ExpectedAnswer(_Model):
    """What a good answer looks like; what is not given is not compared."""

    output: Json = Field(default=None, description="The reference answer.")
    contains: Filled | Annotated[list[Filled], Field(min_length=1)] | ContainsWords | None = Field(
        default=None, description="A list means any of these."
    )
    tools: list[Filled | ExpectedTool] | None = Field(
        default=None, description="An empty list means: no tool is called."
    )
    context: list[str] | None = Field(default=None, description="The facts an ideal answer rests on.")


class AttachedFile(_Model):
    """A file given to the agent with a turn: by `path` or by `url`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "oneOf": [{"required": [name], "properties": {name: {"type": "string"}}} for name in ("path", "url")]
        },
    )

    path: str | None = None
    url: str | None = None
    type: str | None = None
    description: str | None = None
    pages: list[Annotated[int, Field(ge=1)]] | None = None
    sheet: str | None = None
    range: str | None = None
    cache: bool | None = None


class MockModel(_Model):
    """What a tool answers instead of being called: a result, or an error."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "not": {
                "properties": {name: {"not": {"const": None}} for name in ("result", "error")},
                "required": ["result", "error"],
            }
        },
    )

    args: dict[str, Json] | None = Field(default=None, description="For which arguments; matchers are allowed.")
    result: Json = None
    error: Filled | None = Field(default=None, description="What the tool fails with.")
    delay: float | None = Field(default=0.0, ge=0, description="Seconds before it answers.")
    times: int | None = Field(default=None, ge=1, description="How often it answers; then the next one does.")


Mocks = dict[str, MockModel | Annotated[list[MockModel], Field(min_length=1)]] | None


class ScenarioModel(_Model):
    """What a simulated user is told; the conversation comes about when it is held."""

    start: Filled = Field(description="The first message, word for word.")
    plan: Filled = Field(description="What the user is after, and in which order.")
    persona: Filled | dict[str, Json] | None = Field(
        default=None, description="EXPERT, NOVICE, EVALUATOR, a text, or an object that describes a person."
    )
    max_turns: int | None = Field(default=20, ge=1, le=1000, description="Messages of the user, the first included.")
    stop: Filled | None = Field(default="</finished>", description="The mark by which the user ends the conversation.")
    model: Filled | dict[str, Json] | None = Field(
        default=None, description="Who plays the user; the judge of the run if nobody is named."
    )
    instructions: str | None = Field(default=None, description="What else the user is told.")
    show_tools: bool | None = Field(default=False, description="Whether the user sees which tools the agent used.")


class QuarantineModel(_Model):
    """Why a case runs and is reported but decides nothing for the time being."""

    reason: Filled
    until: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="The last day; after it the case fails.")
    owner: Filled | None = Field(default=None, description="Who is to mend it.")


class TurnModel(_OpenModel):
    """One message to the agent and what is expected back."""

    input: Json
    expected: ExpectedAnswer | str | float | bool | list[Json] | None = None
    expected_output_contains: Annotated[list[Filled], Field(min_length=1)] | None = Field(
        default=None, description="Words of a good answer, as lists of cases in test modules have them."
    )
    match: Literal["any", "all"] | None = Field(default=None, description="How many of these words must be there.")
    evaluators: list[EvaluatorEntry] | None = None
    retrieval_context: list[str] | None = None
    files: list[str | AttachedFile] | None = None
    metadata: dict[str, Json] | None = None


_OF_A_TURN = ("input", "expected", "expected_output_contains", "match", "retrieval_context", "files")


class CaseModel(BaseModel):
    """One conversation to hold with the agent: `input`, `turns`, or a `scenario`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "patternProperties": {"^x-": {"description": OWN}},
            "if": {"required": ["scenario"], "properties": {"scenario": {"type": "object"}}},
            "then": {"properties": {**dict.fromkeys(_OF_A_TURN, False), "turns": {"type": "null"}}},
            "else": {
                "if": {"required": ["turns"], "properties": {"turns": {"type": "array"}}},
                "then": {"properties": dict.fromkeys(_OF_A_TURN, False)},
                "else": {"required": ["input"]},
            },
        },
    )

    id: Filled | int | None = None
    description: str | None = None
    tags: list[str] | None = None
    skip: Filled | None = Field(default=None, description="Why the case is not run at present.")
    quarantine: QuarantineModel | None = Field(default=None, description="It runs and is reported, and does not gate.")
    input: Json = None
    expected: ExpectedAnswer | str | float | bool | list[Json] | None = None
    expected_output_contains: Annotated[list[Filled], Field(min_length=1)] | None = Field(
        default=None, description="Words of a good answer, as lists of cases in test modules have them."
    )
    match: Literal["any", "all"] | None = Field(default=None, description="How many of these words must be there.")
    retrieval_context: list[str] | None = None
    files: list[str | AttachedFile] | None = None
    turns: list[TurnModel] | None = Field(default=None, min_length=1)
    scenario: ScenarioModel | None = Field(default=None, description="For a conversation with a simulated user.")
    evaluators: list[EvaluatorEntry] | None = Field(default=None, description='"..." stands for the suite\'s own.')
    implied: bool | None = Field(default=None, description="false: what is expected is not checked by itself.")
    inputs: dict[str, Json] | None = Field(default=None, description="Values the application asks for by name.")
    metadata: dict[str, Json] | None = None
    state: dict[str, Json] | None = Field(default=None, description="What the session knows before the first turn.")
    final_state: dict[str, Json] | None = Field(default=None, description="What it should know after the last one.")
    repeat: int | None = Field(default=None, ge=1)
    timeout: float | None = Seconds
    mocks: Mocks = Field(
        default=None, description="By tool: what it answers instead of being called; the first that matches."
    )
    doubles: Mocks = Field(default=None, deprecated="Use `mocks`.")


class CriteriaModel(_Model):
    """How outcomes become the verdict of the suite."""

    trials: Literal["all", "any", "majority", "mean"] | None = "all"
    threshold: float | None = Field(default=None, ge=0, le=1)
    pct: float | None = Field(default=1.0, gt=0, le=1, description="The share of cases that must pass.")


class SettingsModel(_Model):
    """How the suite asks to be run; the command line overrides it."""

    repeat: int | None = Field(default=None, ge=1)
    parallel: int | None = Field(default=None, ge=1)
    timeout: float | None = Seconds
    evaluator_timeout: float | None = Seconds
    retries: int | None = Field(default=None, ge=0)
    max_reply_bytes: int | None = Field(default=None, ge=1, description="More than this in one answer fails the trial.")


class WaiverModel(_Model):
    """A mutant that `proctor mutate` does not hold against the suite, and why."""

    mutant: str = Field(description="The kind of mutant.", json_schema_extra={"enum": list(MUTANT_KINDS)})
    reason: Filled = Field(description="Why nothing needs to notice it.")
    case: Filled | None = Field(default=None, description="The id of the one case it holds for; all if none is named.")


RerunTools = bool | Filled | Annotated[dict[str, Filled], Field(min_length=1)] | None


class SuiteModel(_OpenModel):
    """A Proctor suite."""

    schema_: str | None = Field(default=None, alias="$schema")
    name: Filled | None = None
    description: str | None = None
    agent: str | dict[str, Json] | None = Field(
        default=None, description="file.py:name, module:name, a URL, or an object that describes the agent."
    )
    agents: (
        Annotated[dict[str, str | dict[str, Json]], Field(min_length=1)]
        | Annotated[list[Filled], Field(min_length=1)]
        | None
    ) = Field(default=None, description="Several agents by name, or a list of references: each is asked every case.")
    judge: Filled | dict[str, Json] | None = Field(
        default=None,
        description="Who judges where an evaluator needs a judge: openai:gpt-5-mini, rules, or an object.",
    )
    rerun_tools: RerunTools = Field(
        default=None,
        description="Re-run the agent's tools with its arguments, to check the answer against their results: true for "
        "those marked with @proctor.tool, tools.py:TOOLS, or an object of references by tool.",
    )
    reexecute: RerunTools = Field(default=None, deprecated="Use `rerun_tools`.")
    evaluators: list[EvaluatorEntry] | None = Field(default=None, json_schema_extra=_NOT_INHERITED)
    criteria: CriteriaModel | None = None
    settings: SettingsModel | None = None
    waivers: list[WaiverModel] | None = None
    cases: list[CaseModel] = Field(min_length=1)


def schema_text(evaluators: Mapping[str, str]) -> str:
    """The JSON Schema of a native suite, as it is shipped.

    `evaluators` are the names that editors offer, each with what it is for; any other name is as valid.
    """
    schema = SuiteModel.model_json_schema()
    defined = schema["$defs"]
    named = [{"const": name, "description": summary} for name, summary in evaluators.items()]
    defined["EvaluatorName"] = {"anyOf": [*named, defined["EvaluatorName"]]}
    with_options = defined["EvaluatorWithOptions"]
    options = with_options["additionalProperties"]
    with_options["properties"] = {name: {**options, "description": text} for name, text in evaluators.items()}
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"
