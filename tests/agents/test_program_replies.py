"""What counts as the reply of a program that answers a whole conversation, and what never does."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import only, run, suite

from proctor.agents.command_agent import CommandAgent
from proctor.agents.resolve import resolve_agent
from proctor.agents.wire_format import breaks_off, read_answer
from proctor.base.errors import AgentFailed
from proctor.cases.suite import Case, Expected, Turn
from proctor.results.run import Outcome, Trial

pytestmark = pytest.mark.process

HEAD = """
import json, os, sys
def say(text): print(text, flush=True)
def answer(turn, text=None): say(json.dumps({"id": turn["id"], "text": text or f"answer {turn['input']}"}))
turns = (json.loads(line) for line in sys.stdin)
"""


def program(tmp_path: Path, body: str, **options: Any) -> CommandAgent:
    (tmp_path / "agent.py").write_text(HEAD + body, encoding="utf-8")
    return CommandAgent([sys.executable, "agent.py"], cwd=tmp_path, session=True, **options)


def converse(agent: Any, *inputs: str, timeout: float = 20, **case: Any) -> Trial:
    turns = tuple(Turn(input=text, expected=Expected(output=f"answer {text}")) for text in inputs)
    return only(run(suite([Case(id="talk", turns=turns, timeout=timeout, **case)]), agent=agent))


@pytest.mark.parametrize(
    "body",
    [
        "for turn in turns: answer(turn)",
        "say('up'); say('{not json'); say('[1, 2]'); say('42')\nfor turn in turns: say('a'); answer(turn); say('b')",
        # JSON logs of common libraries, of which one has a key that could be an answer
        'for turn in turns: say(\'{"level":"info","message":"asking"}\'); answer(turn)',
        'for turn in turns: say(\'{"level":30,"id":7,"msg":"asking"}\'); answer(turn)',
        # a message of another protocol that has an id of its own
        'for turn in turns: say(\'{"jsonrpc":"2.0","id":99,"method":"tools/call"}\'); answer(turn)',
        # what it reads, with and without words in front
        "for turn in turns: say(json.dumps(turn)); say('got ' + json.dumps(turn)); answer(turn)",
        # output without a line break in front of the reply
        "for turn in turns: print('loading {x}... ', end=''); answer(turn)",
        # ids as text, a reply without one, and blank lines
        "for turn in turns: say(''); say(json.dumps({'id': str(turn['id']), 'answer': 'answer ' + turn['input']}))",
        "for turn in turns: say(json.dumps({'answer': 'answer ' + turn['input']}))",
        # after a program has used ids, an object without one is output
        'for turn in turns: answer(turn); say(\'{"text": "hello"}\')',
        # a flood on stderr must not block it
        "for turn in turns: sys.stderr.write('x' * 3_000_000 + chr(10)); answer(turn)",
    ],
)
def test_lines_that_are_not_replies_never_move_the_answers_of_a_conversation(tmp_path: Path, body: str) -> None:
    trial = converse(program(tmp_path, body), "one", "two", "three")
    assert trial.outcome is Outcome.PASSED, trial.reason
    assert [reply.text for reply in trial.replies] == ["answer one", "answer two", "answer three"]


def test_what_a_program_prints_besides_is_shown_with_the_trial(tmp_path: Path) -> None:
    trial = converse(program(tmp_path, "for turn in turns: say('cache is cold'); answer(turn)"), "one")
    assert any("cache is cold" in warning for warning in trial.warnings)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        # two replies to one turn, at once and late
        ("for turn in turns: answer(turn); answer(turn)", "replied to the request 1 instead of 2|two replies"),
        ('for turn in turns: say(\'{"text": "answer one"}\'); say(\'{"text": "answer two"}\')', "two replies|one more"),
        # a reply to a request that was not the last one, or that never was
        ("for turn in turns: answer({**turn, 'id': 1})", "replied to the request 1 instead of 2"),
        ("for turn in turns: answer({**turn, 'id': 17})", "replied to the request 17 instead of 1"),
        # it ends in the middle of a reply, with each kind of status
        ("for turn in turns: print('{\"text\": \"answer one', end='', flush=True); sys.exit(0)", "middle of a line"),
        ("for turn in turns: print('{\"text\": \"answer one\"}', end='', flush=True); os._exit(1)", "middle of a line"),
        ("for turn in turns: print('answer one', end='', flush=True); os.abort()", "SIGABRT"),
        # it ends before a reply
        ("pass", "exit code 0 .before it answered turn 1"),
        ("for turn in turns: say('answer one'); break", "exit code 0 .before it answered turn 1"),
        ("for turn in turns: answer(turn); break", "before it answered turn 2"),
    ],
)
def test_a_program_that_ends_or_answers_out_of_turn_is_an_error(tmp_path: Path, body: str, reason: str) -> None:
    trial = converse(program(tmp_path, body), "one", "two")
    assert trial.outcome is Outcome.ERROR
    assert any(part in trial.reason.replace("(", ".") for part in reason.split("|")), trial.reason


def test_a_surplus_reply_after_the_last_turn_is_an_error(tmp_path: Path) -> None:
    body = "for turn in turns: say(json.dumps({'text': 'answer one'})); say(json.dumps({'text': 'answer two'}))"
    trial = converse(program(tmp_path, body), "one")
    assert trial.outcome is Outcome.ERROR
    assert "one more reply" in trial.reason


def test_a_program_that_crashes_after_its_last_answer_is_an_error(tmp_path: Path) -> None:
    body = "for turn in turns: answer(turn); os._exit(3)"
    agent = program(tmp_path, body)

    async def hold() -> None:
        async with agent.session(Case(id="c", turns=(Turn(input="one"),))) as session:
            assert (await session.send(Turn(input="one"))).text == "answer one"
            await session._process.wait()  # type: ignore[union-attr]

    with pytest.raises(AgentFailed, match=r"exit code 3 .after its last answer") as caught:
        asyncio.run(hold())
    assert caught.value.infrastructure
    # But one that only does not expect the end of its input has answered everything.
    trial = converse(program(tmp_path, "while True: answer(json.loads(input()))"), "one", "two")
    assert trial.outcome is Outcome.PASSED


def test_plain_text_is_no_reply_and_the_trial_says_what_one_is(tmp_path: Path) -> None:
    trial = converse(program(tmp_path, "for turn in turns: say('answer one')"), "one", timeout=1)
    assert trial.outcome is Outcome.FAILED
    assert "no answer within" in trial.reason
    assert any("a JSON object" in warning and "answer one" in warning for warning in trial.warnings)


def test_a_reply_that_comes_too_late_answers_nothing(tmp_path: Path) -> None:
    body = "import time\nfor turn in turns: time.sleep(1.5 if turn['input'] == 'one' else 0); answer(turn)"
    trial = converse(program(tmp_path, body), "one", "two", timeout=1, continue_after_failed_turn=True)
    assert trial.outcome is not Outcome.PASSED
    assert all(reply.text != "answer one" for reply in trial.replies[1:])


def test_a_line_larger_than_a_reply_may_be_is_refused(tmp_path: Path) -> None:
    agent = program(tmp_path, "for turn in turns: say('x' * 11_000_000); answer(turn)")
    assert "larger than 10 MB" in converse(agent, "one").reason


def test_the_cause_of_a_failing_program_is_shown_wherever_it_is_in_stderr(tmp_path: Path) -> None:
    body = "print('ROOT CAUSE', *range(100_000), 'LAST WORDS', sep=chr(10), file=sys.stderr); sys.exit(1)"
    reason = converse(program(tmp_path, body), "one").reason
    assert "ROOT CAUSE" in reason
    assert "LAST WORDS" in reason
    assert "lines omitted" in reason
    assert len(reason) < 1000


ERRORS = [
    ({"error": "no flights"}, Outcome.FAILED, "no flights"),
    ({"text": "answer one", "error": {"message": "no seats"}}, Outcome.FAILED, "no seats"),
    ({"error": {"message": "quota used up", "infrastructure": True}}, Outcome.ERROR, "quota used up"),
    ({"error": {"message": "busy", "retry_after": 0.01}}, Outcome.ERROR, "busy"),
    ({"error": {"code": 7}}, Outcome.FAILED, '{"code": 7}'),
    ({"error": True}, Outcome.FAILED, "reports an error"),
    ({"text": "answer one", "error": None}, Outcome.PASSED, ""),
    ({"text": "answer one", "error": ""}, Outcome.PASSED, ""),
]


@pytest.mark.parametrize("session", [False, True])
@pytest.mark.parametrize(("reply", "outcome", "reason"), ERRORS)
def test_a_reply_can_report_whose_failure_it_is(
    tmp_path: Path, reply: Any, outcome: Outcome, reason: str, session: bool
) -> None:
    source = f"import sys; sys.stdin.readline(); print({json.dumps(reply)!r})"
    agent = CommandAgent([sys.executable, "-c", source], cwd=tmp_path, session=session)
    trial = converse(agent, "one")
    assert trial.outcome is outcome
    assert reason in trial.reason


def test_what_a_failing_agent_did_before_is_kept(tmp_path: Path) -> None:
    reply = "{'id': turn['id'], 'error': 'boom', 'tool_calls': [{'name': 'search', 'args': {'q': 1}}]}"
    trial = converse(program(tmp_path, f"for turn in turns: say(json.dumps({reply}))"), "one")
    assert trial.outcome is Outcome.FAILED
    assert [call.name for call in trial.replies[0].tool_calls] == ["search"]


def test_an_answer_that_breaks_off_is_no_answer(tmp_path: Path) -> None:
    whole = json.dumps({"text": 'answer "one" é', "tool_calls": [{"name": "t", "args": {"a": [1, True]}}]})
    assert all(breaks_off(whole[:end]) for end in range(1, len(whole)))
    assert not any(map(breaks_off, (whole, "[see below]", "{name} is here", '["a" "b"]', '{"a": 1} and more', "[ok")))
    agent = CommandAgent([sys.executable, "-c", 'print(\'{"text": "answer one\')'], cwd=tmp_path)
    trial = converse(agent, "one")
    assert trial.outcome is Outcome.ERROR
    assert "breaks off" in trial.reason


def test_state_user_and_app_of_the_case_reach_a_program(tmp_path: Path) -> None:
    body = "for turn in turns: answer(turn, f\"answer {turn['state']['n']} {turn['user_id']} {turn['app_name']}\")"
    agent = program(tmp_path, body)
    trial = converse(agent, "5 ann shop", state={"n": 5}, extra={"x-adk": {"userId": "ann", "appName": "shop"}})
    assert trial.outcome is Outcome.PASSED, trial.reason


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
def test_a_node_program_answers_a_conversation(tmp_path: Path) -> None:
    (tmp_path / "agent.mjs").write_text(
        """
import { createInterface } from "node:readline";
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  const turn = JSON.parse(line);
  console.log(JSON.stringify({ id: turn.id, text: `answer ${turn.input}` }));
}
"""
    )
    agent = resolve_agent({"command": "node agent.mjs", "session": True}, tmp_path)
    assert converse(agent, "one", "two").outcome is Outcome.PASSED


def test_a_program_can_say_that_its_answer_comes_from_a_cache() -> None:
    assert read_answer({"text": "ok", "from_cache": True}).from_cache
    assert not read_answer({"text": "ok"}).from_cache
