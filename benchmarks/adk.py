"""EvalSets with a tool trajectory and ROUGE, beside adk-python's own AgentEvaluator on the same set and agent.

Three contenders: Proctor with a plain function, Proctor driving the ADK agent, ADK driving it. The model is a script
(one tool call, then a text), so that what is left is the framework. The peer's environment is 900 MB and more; it is
made only when this group is asked for by name.
"""

from __future__ import annotations

import json
from pathlib import Path

from environments import HERE, ROOT, Interpreter, install_here, installed_version, peer
from measuring import Contender, clean_environment
from one_and_many import OneAndMany, compare_both
from table import Row

PEER = "google-adk"
DRIVEN = "proctor, the ADK agent"

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
    contenders = [_contender("proctor, a function", proctor, "drive_adk.py", "plain", folder, cases)]
    adk = peer(PEER) if peers else None
    if adk is not None:
        install_here(adk, ROOT)
        title = f"{PEER}[eval] {installed_version(adk, PEER)}"
        contenders.append(_contender(DRIVEN, adk, "drive_adk.py", "desk", folder, cases))
        contenders.append(_contender(title, adk, "peers/drive_google_adk.py", "desk", folder, cases))
    spent = compare_both(contenders, cases, rounds)
    rows = spent[DRIVEN].against(spent[title], "same ADK agent") if adk is not None else []
    if peers and adk is None:
        rows.append(Row(f"- {PEER}[eval]", "not installed"))
    return rows + [it.told("EvalSet cases") for it in spent.values()]


def _contender(title: str, interpreter: Interpreter, script: str, agent: str, folder: Path, cases: int) -> OneAndMany:
    command = [str(interpreter.python), str(HERE / script), agent]
    environment = clean_environment(PYTHONPATH=str(folder))
    one, many = (
        Contender(f"{title}, {size}", [*command, f"desk-{size}.test.json"], folder, environment) for size in (1, cases)
    )
    return OneAndMany(title, one, many)
