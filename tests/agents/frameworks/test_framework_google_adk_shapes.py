"""Apps, runners, plugins, toolsets and streams of the real google-adk: `make frameworks`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import proctor
from proctor.agents.resolve import resolve_agent
from proctor.cases.suite import Case, EvaluatorSpec, Suite, Turn

pytest.importorskip("google.adk", reason="google-adk has an environment of its own: make frameworks")

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types
from pydantic import BaseModel

pytestmark = pytest.mark.filterwarnings("ignore")


class Busy(Exception):
    code = 429


class Scripted(BaseLlm):
    """Asks for these tools at once, then answers; or fails, or answers as it is told to."""

    model: str = "scripted"
    asks: list[Any] = []  # noqa: RUF012
    answers: Any = "done"

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
        if isinstance(self.answers, Exception):
            raise self.answers
        if isinstance(self.answers, LlmResponse):
            yield self.answers
            return
        told = llm_request.contents[-1].parts[-1].function_response is not None
        calls = [types.FunctionCall(name=name, args=arguments) for name, arguments in self.asks]
        parts = [types.Part(text=self.answers)] if told or not calls else [types.Part(function_call=c) for c in calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def get_rate(city: str) -> dict[str, str]:
    "The rate in a city."
    return {"rate": f"rate of {city}"}


def closed_today(city: str) -> str:
    "Never works."
    raise ValueError(f"no rates in {city}")


def agent(*asks: Any, **more: Any) -> LlmAgent:
    model = Scripted(asks=list(asks), answers=more.pop("answers", "done"))
    return LlmAgent(**{"name": "rates", "model": model, "tools": [get_rate, closed_today], **more})


def ran(target: Any, *names: str) -> list[proctor.Trial]:
    check = (EvaluatorSpec("ToolCount", {"at_most": 9}),)
    cases = tuple(Case(id=name, turns=(Turn(name),), evaluators=check) for name in names or ("Oslo",))
    return list(proctor.run(Suite("adk", cases), agent=target).trials)


def replied(target: Any) -> proctor.Reply:
    (trial,) = ran(target)
    assert trial.outcome == "passed", trial.reason
    return trial.replies[0]


@pytest.mark.parametrize(
    "wrapped",
    [lambda made: App(name="desk", root_agent=made), lambda made: InMemoryRunner(agent=made)],
    ids=["an app", "a runner"],
)
def test_an_app_and_what_a_runner_runs_are_agents(wrapped: Any) -> None:
    reply = replied(wrapped(agent(("get_rate", {"city": "Oslo"}))))
    assert (reply.text, [call.name for call in reply.tool_calls]) == ("done", ["get_rate"])


def test_text_parts_are_separate_lines_and_thoughts_are_stored_apart() -> None:
    parts = [types.Part(text="It may rain.", thought=True), types.Part(text="The weather"), types.Part(text="is sunny")]
    answer = LlmResponse(content=types.Content(role="model", parts=parts))
    reply = replied(agent(answers=answer))
    assert (reply.text, reply.thoughts) == ("The weather\nis sunny", "It may rain.")


class Weather(BaseModel):
    city: str


def test_data_that_arrives_in_several_parts_is_read_as_one() -> None:
    parts = [types.Part(text='{"city": "Lon'), types.Part(text='don"}')]
    answer = LlmResponse(content=types.Content(role="model", parts=parts))
    reply = replied(agent(answers=answer, tools=[], output_schema=Weather))
    assert reply.structured == {"city": "London"}


class Meddling(BasePlugin):
    """A plugin of the application that answers for one tool and makes words of the errors of others."""

    async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> Any:
        return {"rate": "from a cache"} if tool.name == "get_rate" else None

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Any) -> Any:
        return {"sorry": str(error)}


def test_calls_that_a_plugin_of_the_application_answers_are_seen_and_errors_it_hides_too() -> None:
    asks = [("get_rate", {"city": "Oslo"}), ("closed_today", {"city": "Rome"})]
    reply = replied(App(name="desk", root_agent=agent(*asks), plugins=[Meddling("meddling")]))
    answered, failed = reply.tool_calls
    assert (answered.result, answered.error) == ({"rate": "from a cache"}, None)
    assert (failed.result, failed.error) == (None, "ValueError: no rates in Rome")


class Toolset(BaseToolset):
    """Tools behind a connection that must not be closed while it is in use."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = 0
        self.asked_when_closed = 0

    async def get_tools(self, readonly_context: Any = None) -> list[Any]:
        self.asked_when_closed += self.closed
        return [FunctionTool(get_rate)]

    async def close(self) -> None:
        self.closed += 1


def test_a_toolset_stays_open_until_the_last_of_many_trials_is_over() -> None:
    shared = Toolset()
    trials = ran(agent(("get_rate", {"city": "Oslo"}), tools=[shared]), *[f"case{n}" for n in range(20)])
    assert {str(trial.outcome) for trial in trials} == {"passed"}
    assert (shared.closed, shared.asked_when_closed) == (1, 0)


class Offer(BaseModel):
    rate: float


def test_an_answer_with_a_schema_is_data() -> None:
    reply = replied(agent(answers='{"rate": 0.05}', output_schema=Offer, tools=[]))
    assert (reply.text, reply.structured) == ('{"rate": 0.05}', {"rate": 0.05})


class Streaming(BaseAgent):
    """Speaks in pieces and never says the whole."""

    async def _run_async_impl(self, ctx: Any) -> Any:
        for word in ("five ", "per ", "cent"):
            content = types.Content(role="model", parts=[types.Part(text=word)])
            yield Event(author=self.name, content=content, partial=True)


def test_the_answer_of_an_agent_that_only_streams_is_all_of_its_pieces() -> None:
    assert replied(Streaming(name="streaming")).text == "five per cent"


def test_a_tool_that_raises_is_not_blamed_on_the_model() -> None:
    (trial,) = ran(agent(("closed_today", {"city": "Rome"})))
    assert str(trial.outcome) == "failed"
    assert trial.reason.startswith("the agent raised ValueError: no rates in Rome (")


def test_a_busy_service_is_not_held_against_the_agent() -> None:
    (trial,) = ran(agent(answers=Busy("try later")))
    assert str(trial.outcome) == "error"
    assert "try later" in trial.reason


def test_a_model_that_says_nothing_for_a_reason_has_failed_with_it() -> None:
    (trial,) = ran(agent(answers=LlmResponse(error_code="SAFETY")))
    assert (str(trial.outcome), trial.reason) == ("failed", "the model gave no answer: SAFETY")


def approved(city: str) -> str:
    "Needs a person."
    return city


def test_calls_that_were_not_made_have_an_error_that_says_why() -> None:
    tools = [get_rate, FunctionTool(approved, require_confirmation=True)]
    (trial,) = ran(agent(("get_rate", {}), ("approved", {"city": "Oslo"}), tools=tools))
    missing, waiting = trial.replies[0].tool_calls
    assert missing.error is not None
    assert "mandatory input parameters are not present" in missing.error
    assert waiting.error is not None
    assert "confirmation" in waiting.error


def test_the_fingerprint_changes_with_the_code_of_a_tool(tmp_path: Path) -> None:
    found = []
    for folder, said in (("one", "low"), ("two", "low"), ("three", "high")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "rates_app.py").write_text(
            "from google.adk.agents import LlmAgent\n"
            f"def rate(city: str): return {said!r}\n"
            "agent = LlmAgent(name='rates', model='some', tools=[rate])\n"
        )
        found.append(resolve_agent(f"{tmp_path / folder / 'rates_app.py'}:agent").fingerprint)
    assert found[0] == found[1] != found[2]
