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

from proctor.cases.formats.native.parts import FORMER_MUTANT_KINDS, MUTANT_KINDS

Json = Any
OWN = "Keys that begin with x- are yours: they are stored and not read."

EXPECTED = "What makes an answer right; a text is short for {output: text}."
PASSAGES = "Passages that the answer is checked against."

Filled = Annotated[str, Field(pattern=r"\S")]
"""Non-empty text."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _OpenModel(BaseModel):
    """Takes `x-` keys besides its own."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"patternProperties": {"^x-": {"description": OWN}}})


class EvaluatorOptions(BaseModel):
    """How an evaluator's score is used; any other key is an argument of the evaluator."""

    model_config = ConfigDict(extra="allow")

    threshold: float | None = Field(default=None, ge=0, le=1, description="The lowest score that passes.")
    name: Filled | None = Field(default=None, description="What reports call it.")
    report_only: bool | None = Field(default=False, description="Report the score, but do not let it decide the case.")
    gate: bool | None = Field(default=True, deprecated="Use `report_only`, which means the opposite.")
    scope: Literal["turn", "case"] | None = Field(default=None, description="Score each turn, or the conversation.")
    output: Filled | None = Field(default=None, description="The named output to score, if the agent gives several.")
    timeout: float | None = Field(default=None, gt=0, description="Time limit in seconds.")
    output_path: Filled | None = Field(default=None, description="Where in an output of data to look: order.total")
    retries: int | None = Field(default=0, ge=0, description="Retries after it breaks.")
    optional: bool | None = Field(default=False, description="Skip it if it breaks, instead of ending in an error.")


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

    name: Filled = Field(description="The name of the tool.")
    args: dict[str, Json] | None = Field(
        default=None, description='Arguments: literals, or matchers such as {"$regex": "A-[0-9]+"}.'
    )
    count: int | None = Field(default=1, ge=1, description="At least this many such calls.")
    substring: bool | None = Field(default=False, description="The tool's name need only contain `name`.")
    extra_args: bool | None = Field(
        default=False, description="Whether a call may have arguments that args does not list; by default it may not."
    )
    result: Json = Field(default=None, description="What the tool returns; a call with another result does not count.")
    or_earlier: bool | None = Field(default=False, description="Whether a call in an earlier turn counts too.")


class ContainsWords(_Model):
    """Words the answer must mention: at least one."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "anyOf": [
                {"required": [name], "properties": {name: {"type": ["array", "string"], "minItems": 1}}}
                for name in ("any", "all")
            ]
        },
    )

    any: Filled | list[Filled] | None = Field(default=None, description="At least one of these.")
    all: Filled | list[Filled] | None = Field(default=None, description="Every one of these.")


class ExpectedAnswer(_Model):
    """What makes an answer right. What is not given is not checked."""

    output: Json = Field(default=None, description="The right answer.")
    contains: Filled | Annotated[list[Filled], Field(min_length=1)] | ContainsWords | None = Field(
        default=None, description="Words that the answer must contain; a list means any of these."
    )
    tools: list[Filled | ExpectedTool] | None = Field(
        default=None, description="Tools that must be called; an empty list means that no tool is called."
    )
    context: list[str] | None = Field(default=None, description="Facts that the answer must agree with.")
    state: dict[str, Json] | None = Field(default=None, description="What the session should know after this turn.")


class AttachedFile(_Model):
    """A file given to the agent with a turn: by `path` or by `url`."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "oneOf": [{"required": [name], "properties": {name: {"type": "string"}}} for name in ("path", "url")]
        },
    )

    path: str | None = Field(default=None, description="A file, relative to the suite's folder.")
    url: str | None = Field(default=None, description="An address to download it from.")
    type: str | None = Field(default=None, description="What kind of file it is; by default its name says so.")
    description: str | None = Field(default=None, description="What the file is, for the agent.")
    pages: list[Annotated[int, Field(ge=1)]] | None = Field(default=None, description="Only these pages, from 1.")
    sheet: str | None = Field(default=None, description="Only this sheet of a workbook.")
    range: str | None = Field(default=None, description="Only these cells of a sheet, such as A1:C20.")
    cache: bool | None = Field(default=None, description="Whether a downloaded file is kept for later runs.")


class MockModel(_Model):
    """The result or error of a mocked tool, which is not called."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "not": {
                "properties": {name: {"not": {"const": None}} for name in ("result", "error")},
                "required": ["result", "error"],
            }
        },
    )

    args: dict[str, Json] | None = Field(default=None, description="Only for calls with these arguments or matchers.")
    result: Json = Field(default=None, description="What the tool returns.")
    error: Filled | None = Field(default=None, description="What the tool fails with.")
    delay: float | None = Field(default=0.0, ge=0, description="Seconds to wait before returning.")
    times: int | None = Field(default=None, ge=1, description="Calls per trial; then the next mock is used.")


Mocks = dict[str, MockModel | Annotated[list[MockModel], Field(min_length=1)]] | None


class ScenarioModel(_Model):
    """Instructions for a simulated user, played by a language model."""

    start: Filled = Field(description="The first message, word for word.")
    plan: Filled = Field(description="What the user wants, knows and does, in order.")
    persona: Filled | dict[str, Json] | None = Field(
        default=None, description="EXPERT, NOVICE, EVALUATOR, a text, or an object that describes a person."
    )
    max_turns: int | None = Field(default=20, ge=1, le=1000, description="Most messages of the user, with the first.")
    stop: Filled | None = Field(default="</finished>", description="The mark by which the user ends the conversation.")
    model: Filled | dict[str, Json] | None = Field(
        default=None, description="The model that plays the user; by default the judge of the run."
    )
    instructions: str | None = Field(default=None, description="Further instructions for the user.")
    show_tools: bool | None = Field(default=False, description="Whether the user sees which tools the agent used.")


class QuarantineModel(_Model):
    """A case that runs and is reported, and does not affect the verdict until a date."""

    reason: Filled = Field(description="Why.")
    until: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$", description="The last day; after it the case fails.")
    owner: Filled | None = Field(default=None, description="Who will fix it.")


class TurnModel(_OpenModel):
    """One message to the agent and what is expected back."""

    input: Json = Field(description="Text, or any data that the agent takes.")
    expected: ExpectedAnswer | str | float | bool | list[Json] | None = Field(default=None, description=EXPECTED)
    expected_output_contains: Annotated[list[Filled], Field(min_length=1)] | None = Field(
        default=None, description="Another spelling of expected: {contains: …}, as in lists of test cases."
    )
    match: Literal["any", "all"] | None = Field(default=None, description="Whether any or all of them must appear.")
    evaluators: list[EvaluatorEntry] | None = Field(default=None, description="Instead of the suite's.")
    retrieval_context: list[str] | None = Field(default=None, description=PASSAGES)
    files: list[str | AttachedFile] | None = Field(default=None, description="Files for the agent.")
    metadata: dict[str, Json] | None = Field(default=None, description="Any data, for evaluators.")


_OF_A_TURN = ("input", "expected", "expected_output_contains", "match", "retrieval_context", "files")


class CaseModel(BaseModel):
    """One conversation to have with the agent: an `input`, `turns`, or a `scenario`."""

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

    id: Filled | int | None = Field(default=None, description="Unique in the suite; case-1, case-2, … by default.")
    description: str | None = Field(default=None, description="For people, and for -k.")
    tags: list[str] | None = Field(default=None, description="For --tag and -k.")
    skip: Filled | None = Field(default=None, description="Do not run the case; the text is the reason.")
    quarantine: QuarantineModel | None = Field(
        default=None, description="Run the case without letting it affect the verdict, until a date."
    )
    input: Json = Field(default=None, description="Text, or any data that the agent takes.")
    expected: ExpectedAnswer | str | float | bool | list[Json] | None = Field(default=None, description=EXPECTED)
    expected_output_contains: Annotated[list[Filled], Field(min_length=1)] | None = Field(
        default=None, description="Another spelling of expected: {contains: …}, as in lists of test cases."
    )
    match: Literal["any", "all"] | None = Field(default=None, description="Whether any or all of them must appear.")
    retrieval_context: list[str] | None = Field(default=None, description=PASSAGES)
    files: list[str | AttachedFile] | None = Field(default=None, description="Files for the agent.")
    turns: list[str | TurnModel] | None = Field(
        default=None, min_length=1, description="A conversation, turn by turn; text is short for {input: text}."
    )
    scenario: ScenarioModel | None = Field(default=None, description="A conversation with a simulated user.")
    evaluators: list[EvaluatorEntry] | None = Field(
        default=None, description="Instead of the suite's; \"...\" stands for the suite's."
    )
    implied: bool | None = Field(
        default=None, description="false: only the listed evaluators score the case, not those for `expected`."
    )
    inputs: dict[str, Json] | None = Field(
        default=None, description="Values that the application asks for with proctor.wrap."
    )
    metadata: dict[str, Json] | None = Field(default=None, description="Any data, for evaluators.")
    state: dict[str, Json] | None = Field(default=None, description="What the session knows before the first turn.")
    final_state: dict[str, Json] | None = Field(default=None, description="What it should know after the last turn.")
    repeat: int | None = Field(default=None, ge=1, description="How many trials of this case.")
    timeout: float | None = Field(default=None, gt=0, description="Time limit for a trial of this case, in seconds.")
    mocks: Mocks = Field(
        default=None, description="Mocked tools by name: one mock, or a list of which the first that matches is used."
    )
    doubles: Mocks = Field(default=None, deprecated="Use `mocks`.")


class CriteriaModel(_Model):
    """How outcomes become the verdict of the suite."""

    trials: Literal["all", "any", "majority", "mean"] | None = Field(
        default="all", description="How many trials of a case must pass; mean: each evaluator's average must."
    )
    threshold: float | None = Field(default=None, ge=0, le=1, description="Overrides the threshold of every evaluator.")
    pct: float | None = Field(default=1.0, gt=0, le=1, description="The share of cases that must pass.")
    arms: Literal["last", "all"] | None = Field(
        default="last", description="Which arms must pass, if there are several; the others are for comparison."
    )


class SettingsModel(_Model):
    """How the suite is run; the command line overrides it."""

    repeat: int | None = Field(default=None, ge=1, description="Trials per case (1).")
    parallel: int | None = Field(default=None, ge=1, description="The most trials that run at the same time (64).")
    timeout: float | None = Field(default=None, gt=0, description="Time limit for a trial, in seconds (300).")
    evaluator_timeout: float | None = Field(
        default=None, gt=0, description="Time limit for an evaluator, in seconds (60; 300 with a judge)."
    )
    retries: int | None = Field(default=None, ge=0, description="Retries after a transient error (2).")
    retry_seconds: float | None = Field(
        default=None, gt=0, description="How long a turn waits in all to be sent again, in seconds (300)."
    )
    max_reply_bytes: int | None = Field(default=None, ge=1, description="A longer answer fails the trial (10 MB).")
    side_effects: bool | None = Field(
        default=None,
        description="Whether asking the agent changes anything outside of the conversation (true). If false, `--hedge` "
        "may ask it twice.",
    )


class WaiverModel(_Model):
    """A mutant that the suite need not kill, and why."""

    mutant: str = Field(
        description="The kind of mutant.", json_schema_extra={"enum": [*MUTANT_KINDS, *FORMER_MUTANT_KINDS]}
    )
    reason: Filled = Field(description="Why nothing needs to notice it.")
    case: Filled | None = Field(default=None, description="Only for the case with this id.")


RerunTools = bool | Filled | Annotated[dict[str, Filled], Field(min_length=1)] | None


class SuiteModel(_OpenModel):
    """A Proctor suite."""

    schema_: str | None = Field(default=None, alias="$schema", description="The schema, for editors.")
    name: Filled | None = Field(default=None, description="What reports call it; the name of the file by default.")
    description: str | None = Field(default=None, description="For people.")
    agent: str | dict[str, Json] | None = Field(
        default=None, description="file.py:name, module:name, a URL, or an object that describes the agent."
    )
    arms: (
        Annotated[dict[str, str | dict[str, Json]], Field(min_length=1)]
        | Annotated[list[Filled], Field(min_length=1)]
        | None
    ) = Field(
        default=None,
        description="Versions of the agent by name, each of which runs every case: a git reference, `.` for the "
        "working folder, an agent, or an object with agent, ref, settings, env and venv.",
    )
    agents: (
        Annotated[dict[str, str | dict[str, Json]], Field(min_length=1)]
        | Annotated[list[Filled], Field(min_length=1)]
        | None
    ) = Field(default=None, deprecated="Use `arms`.")
    judge: Filled | dict[str, Json] | None = Field(
        default=None,
        description="The judge for evaluators that need one: openai:gpt-5-mini, rules, or an object.",
    )
    rerun_tools: RerunTools = Field(
        default=None,
        description="Re-run the agent's tools with its arguments, to check the answer against their results: true for "
        "those marked with @proctor.tool, tools.py:TOOLS, or an object of references by tool.",
    )
    reexecute: RerunTools = Field(default=None, deprecated="Use `rerun_tools`.")
    depends_on: list[str] | None = Field(
        default=None,
        description="Files that the answers depend on besides the agent's code, such as prompts/*.md. If one changes, "
        "stored answers are not reused.",
    )
    allow_files_from: list[str] | None = Field(
        default=None, description="Folders outside of the suite's own whose files cases may attach."
    )
    evaluators: list[EvaluatorEntry] | None = Field(
        default=None, json_schema_extra=_NOT_INHERITED, description="For every case and turn that lists none."
    )
    criteria: CriteriaModel | None = Field(default=None, description="How outcomes become the verdict.")
    settings: SettingsModel | None = Field(default=None, description="How the suite is run.")
    waivers: list[WaiverModel] | None = Field(default=None, description="Mutants that the suite need not kill.")
    cases: list[CaseModel] = Field(min_length=1, description="The cases, at least one.")


def schema_text(evaluators: Mapping[str, str]) -> str:
    """The JSON Schema of a native suite, as it is shipped.

    `evaluators` are the names that editors suggest, each with a description; any other name is valid, too.
    """
    schema = SuiteModel.model_json_schema()
    defined = schema["$defs"]
    named = [{"const": name, "description": summary} for name, summary in evaluators.items()]
    defined["EvaluatorName"] = {"anyOf": [*named, defined["EvaluatorName"]]}
    with_options = defined["EvaluatorWithOptions"]
    options = with_options["additionalProperties"]
    with_options["properties"] = {name: {**options, "description": text} for name, text in evaluators.items()}
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}, indent=2) + "\n"
