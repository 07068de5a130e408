"""The loan advisor's guide with the real agno, its file unchanged: `import deepeval` means Proctor, by an alias."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from repository import ROOT

pytest.importorskip("agno", reason="agno has an environment of its own: make frameworks")
pytest.importorskip("openai", reason="agno's model of OpenAI needs it: make frameworks")

pytestmark = pytest.mark.filterwarnings("ignore")

PROJECT = ROOT / "examples" / "loan_advisor_agno"
MODULE = "tests/test_loan_advisor_agent.py"
ALL_FOUR = {
    "test_agent_with_reference_free_metrics",
    "test_tool_calls_info",
    "test_expected_output_keywords",
    "test_individual_case_example",
}
ABOUT_THE_PAYMENT = {"test_agent_with_reference_free_metrics", "test_expected_output_keywords"}
JUDGED = {"test_agent_with_reference_free_metrics", "test_individual_case_example"}
"""The tests with metrics that need a judge. Without a model, the rules leave parts of this agent's answers open."""


def reply_to(messages: list[dict[str, Any]], falsified: bool) -> dict[str, Any]:
    """What a good model says, or one that tells another payment than its tool."""
    last = messages[-1]
    if last["role"] != "tool":
        payment = "monthly payment" in str(last["content"])
        name = "calculate_loan_payment" if payment else "check_loan_eligibility"
        loan = {"loan_amount": 50000, "annual_interest_rate": 0.05, "loan_term_months": 36}
        person = {"credit_score": 720, "annual_income": 95000, "loan_amount": 40000}
        function = {"name": name, "arguments": json.dumps(loan if payment else person)}
        return {"content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    found = json.loads(last["content"])
    if "monthly_payment" in found:
        monthly = found["monthly_payment"] - (200 if falsified else 0)
        return {
            "content": f"Your monthly payment is ${monthly:,.2f}. The total payment is ${found['total_payment']:,.2f}, "
            f"of which the total interest is ${found['total_interest']:,.2f}."
        }
    return {
        "content": f"Yes, you are eligible for a ${found['loan_amount']:,.0f} loan. Your credit score of "
        f"{found['credit_score']} is above the minimum credit score of {found['minimum_credit_score']}."
    }


class ModelServer(ThreadingHTTPServer):
    falsified = False
    asked = 0


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked += 1
        message = {"role": "assistant", **reply_to(request["messages"], self.server.falsified)}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        body = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    made = ModelServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{made.server_address[1]}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "not-a-key")
    yield made
    made.shutdown()
    made.server_close()


def run(*command: str) -> tuple[int, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PROCTOR"))}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=240,
        env={**kept, "PYTHONIOENCODING": "utf-8", "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return done.returncode, done.stdout + done.stderr


def outcomes(output: str) -> dict[str, set[str]]:
    words: dict[str, set[str]] = {"PASSED": set(), "FAILED": set(), "ERROR": set(), "SKIPPED": set()}
    for line in output.splitlines():
        word, _, place = line.partition(" ")
        if word in words and "::" in place:
            words[word].add(place.partition("::")[2].split(" ")[0])
    return words


def guide(*arguments: str) -> tuple[int, str, dict[str, set[str]]]:
    code, output = run("-m", "pytest", MODULE, "-rA", "-p", "no:cacheprovider", *arguments)
    return code, output, outcomes(output)


def test_with_a_correct_agent_nothing_is_called_wrong_and_what_rules_cannot_decide_is_not_passed(
    server: ModelServer,
) -> None:
    code, output, found = guide("-s")
    assert code == 1, output
    assert found["PASSED"] == ALL_FOUR - JUDGED, output
    assert "failed: " not in output, "no metric fails a correct answer"
    for line in (
        "🔧 Tool: calculate_loan_payment",
        "     - loan_amount: 50000",
        "✅ All outputs contain expected keywords",
        "the rule-based judge cannot decide; use a model",
    ):
        assert line in output
    assert server.asked == 6  # a session asks each case once, and the individual example once more


def test_the_two_that_look_at_the_payment_are_red_with_a_falsified_one(server: ModelServer) -> None:
    server.falsified = True
    code, output, found = guide()
    assert code == 1
    assert found["FAILED"] >= ABOUT_THE_PAYMENT, output
    assert found["PASSED"] == ALL_FOUR - ABOUT_THE_PAYMENT - JUDGED, output
    assert "the passages say “monthly payment: 1498.54”" in output


def test_the_module_runs_as_a_script(server: ModelServer) -> None:
    code, output = run("-m", "proctor.compat.aliases", MODULE, "-p", "no:cacheprovider", "-k", "keywords or info")
    assert code == 0, output
    assert "2 passed" in output


CALLS = """
import proctor
from src.agent.loan_advisor_agent import create_loan_advisor_agent

agent = create_loan_advisor_agent()
runner = proctor.AgentRunner(agent)
question = "What is my monthly payment?"
runs = runner.run_cases([{"id": name, "input": question} for name in "abc"])
runs += [runner.run_test_case(question), runner.run_test_case(question)]
runs.append(proctor.AgentRunner(agent).run_test_case(question))
for run in runs:
    assert "1,498.54" in run.actual_output, run
    assert run.tools_called == ["calculate_loan_payment"]
print(len(runs), "answers")
"""


def test_an_agent_with_a_real_asynchronous_client_answers_call_after_call(server: ModelServer) -> None:
    """The client keeps its connections, which belong to the event loop of the first call."""
    code, output = run("-c", CALLS)
    assert (code, output) == (0, "6 answers\n")
