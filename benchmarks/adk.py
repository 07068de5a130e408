"""EvalSets with a tool trajectory and ROUGE, beside adk-python's own AgentEvaluator on the same set and agent.

Three contenders: Proctor with a plain function, Proctor driving the ADK agent, ADK driving it. The model is a script
(one tool call, then a text), so that what is left is the framework. The peer's environment is 900 MB and more; it is
made only when this group is asked for by name.
"""

from __future__ import annotations

import json
from pathlib import Path

from environments import HERE, ROOT, Interpreter, install_here, installed_version, peer
from measuring import Contender, Cost, clean_environment, compare
from table import Row

PEER = "google-adk"

AGENT = '''"""An agent of ADK whose model is a script: it calls one tool with the account, then tells the result."""

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    model: str = "scripted"

    async def generate_content_async(self, llm_request, stream=False):
        last = llm_request.contents[-1].parts[-1]
        if last.function_response is None:
            call = types.FunctionCall(name="look_up", args={"account": last.text.split()[-1]})
            part = types.Part(function_call=call)
        else:
            part = types.Part(text=last.function_response.response["answer"])
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


def look_up(account: str) -> dict:
    """The balance of an account."""
    return {"answer": f"The balance of account {account} is 100 euros"}


root_agent = LlmAgent(name="desk", model=Scripted(), instruction="Use the tool.", tools=[look_up])
'''

FUNCTION = '''"""The same agent as a plain function."""

from proctor import Reply, ToolCall


def root_agent(question: str) -> Reply:
    account = question.split()[-1]
    return Reply(f"The balance of account {account} is 100 euros", (ToolCall("look_up", {"account": account}),))
'''


def eval_set(cases: int) -> dict[str, object]:
    """Conversations of one turn, each with its tool call and its answer."""

    def content(role: str, text: str) -> dict[str, object]:
        return {"role": role, "parts": [{"text": text}]}

    return {
        "eval_set_id": "desk",
        "eval_cases": [
            {
                "eval_id": f"case-{number}",
                "conversation": [
                    {
                        "user_content": content("user", f"What is the balance of account {number}"),
                        "final_response": content("model", f"The balance of account {number} is 100 euros"),
                        "intermediate_data": {"tool_uses": [{"name": "look_up", "args": {"account": str(number)}}]},
                    }
                ],
            }
            for number in range(cases)
        ],
    }


def measure_adk(proctor: Interpreter, folder: Path, cases: int, rounds: int, *, peers: bool) -> list[Row]:
    for size in (1, cases):
        (folder / f"desk-{size}.test.json").write_text(json.dumps(eval_set(size)), encoding="utf-8")
    package = folder / "desk"
    package.mkdir()
    (package / "__init__.py").write_text("from . import agent\n", encoding="utf-8")
    (package / "agent.py").write_text(AGENT, encoding="utf-8")
    (folder / "plain.py").write_text(FUNCTION, encoding="utf-8")
    contenders = _contenders("proctor, a function", proctor, "drive_adk.py", "plain", folder, cases)
    adk = peer(PEER) if peers else None
    if adk is not None:
        install_here(adk, ROOT)
        title = f"{PEER}[eval] {installed_version(adk, PEER)}"
        contenders += _contenders("proctor, the ADK agent", adk, "drive_adk.py", "desk", folder, cases)
        contenders += _contenders(title, adk, "peers/drive_google_adk.py", "desk", folder, cases)
    costs = compare(contenders, rounds)
    rows = _against(costs, title, cases) if adk is not None else []
    if peers and adk is None:
        rows.append(Row(f"- {PEER}[eval]", "not installed"))
    return rows + [row for name in _names(costs) for row in _told(name, costs, cases)]


def _contenders(
    title: str, interpreter: Interpreter, script: str, agent: str, folder: Path, cases: int
) -> list[Contender]:
    command = [str(interpreter.python), str(HERE / script), agent]
    environment = clean_environment(PYTHONPATH=str(folder))
    return [
        Contender(f"{title}|{size}", [*command, f"desk-{size}.test.json"], folder, environment) for size in (1, cases)
    ]


def _names(costs: dict[str, Cost]) -> list[str]:
    return list(dict.fromkeys(name.partition("|")[0] for name in costs))


def _per_case(costs: dict[str, Cost], name: str, cases: int) -> float:
    """CPU milliseconds of one more case."""
    return (costs[f"{name}|{cases}"].cpu - costs[f"{name}|1"].cpu) / (cases - 1) * 1000


def _told(name: str, costs: dict[str, Cost], cases: int) -> list[Row]:
    first, all_ = costs[f"{name}|1"], costs[f"{name}|{cases}"]
    measured = (
        f"{_per_case(costs, name, cases):.2f} ms a case, {first.cpu:.2f} s to start with one case, "
        f"{all_.peak_kb / 1024:.0f} MB at most"
    )
    return [Row(f"- {cases} EvalSet cases: {name}", measured)]


def _against(costs: dict[str, Cost], title: str, cases: int) -> list[Row]:
    own, other = "proctor, the ADK agent", title
    marginal = _per_case(costs, own, cases) / _per_case(costs, other, cases)
    start = costs[f"{own}|1"].cpu / costs[f"{other}|1"].cpu
    memory = costs[f"{own}|{cases}"].peak_kb / costs[f"{other}|{cases}"].peak_kb
    return [
        Row(f"same ADK agent / {title}: CPU a case", f"{marginal:.2f}x", "less than 1x", marginal < 1),
        Row(f"same ADK agent / {title}: CPU to start", f"{start:.2f}x", "less than 1x", start < 1),
        Row(f"same ADK agent / {title}: peak memory", f"{memory:.2f}x", "less than 1x", memory < 1),
    ]
