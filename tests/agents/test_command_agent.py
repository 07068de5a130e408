from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from proctor.agents.agent import Agent
from proctor.agents.command_agent import CommandAgent
from proctor.agents.reply import Reply, ToolCall
from proctor.agents.resolve import resolve_agent
from proctor.base.errors import AgentFailed, UnreadableReply, UsageError
from proctor.cases.suite import Case, Turn

ECHO = """
import json, sys
asked = json.load(sys.stdin)
print(json.dumps({"text": str(asked["input"]), "state": {"n": asked["state"].get("n", 0) + 1},
                  "outputs": {"asked": asked}, "tool_calls": [{"name": "t", "arguments": {"a": 1}}]}))
"""
LINES = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["input"] == "die":
        print("out of order", file=sys.stderr)
        sys.exit(3)
    print(json.dumps({"text": f"{asked['turn']} {asked['input']}", "state": {"pid": os.getpid()}}), flush=True)
"""


def program(tmp_path: Path, source: str, **options: Any) -> CommandAgent:
    script = tmp_path / "agent.py"
    script.write_text(source)
    return CommandAgent([sys.executable, "agent.py"], cwd=tmp_path, **options)


def ask(agent: Any, *inputs: Any, case: Case | None = None) -> list[Reply]:
    conversation = case or Case(id="c1", turns=tuple(Turn(value) for value in inputs))

    async def hold() -> list[Reply]:
        async with agent.session(conversation) as session:
            return [await session.send(turn) for turn in conversation.turns]

    return asyncio.run(hold())


@pytest.mark.process
def test_a_program_gets_one_json_object_and_answers_with_one(tmp_path: Path) -> None:
    case = Case(id="c1", turns=(Turn("a\ud800"), Turn({"b": 1})), state={"n": 4})
    first, second = ask(program(tmp_path, ECHO), case=case)
    assert first.text == "a\ud800"
    assert first.tool_calls == (ToolCall("t", {"a": 1}),)
    assert (first.state, second.state) == ({"n": 5}, {"n": 6})
    asked = second.outputs[0].value
    assert asked["history"][0] == {"role": "user", "content": "a\ud800"}
    assert (asked["case_id"], asked["turn"], asked["input"], asked["state"]) == ("c1", 1, {"b": 1}, {"n": 5})
    assert asked["session_id"] == first.outputs[0].value["session_id"]


@pytest.mark.process
@pytest.mark.parametrize(
    ("printed", "text", "structured"),
    [
        ("print('just words')", "just words", None),
        ("print(42)", "42", None),
        ("print('[1, 2]')", "[1, 2]", [1, 2]),
        ("print('[see below]')", "[see below]", None),
        ("print('\"quoted\"')", "quoted", None),
        ("pass", "", None),
        ("import sys; sys.stdout.buffer.write(b'caf\\xe9')", "caf\ufffd", None),
    ],
)
def test_what_a_program_prints_is_json_or_the_text_it_is(
    tmp_path: Path, printed: str, text: str, structured: Any
) -> None:
    reply = ask(program(tmp_path, printed), "x")[0]
    assert (reply.text, reply.structured) == (text, structured)


@pytest.mark.process
def test_ten_megabytes_go_in_and_out(tmp_path: Path) -> None:
    source = "import json, sys; print(json.load(sys.stdin)['input'])"
    assert ask(program(tmp_path, source), "x" * 10_000_000)[0].text == "x" * 10_000_000
    lines = (
        "import json, sys\nfor line in sys.stdin: print(json.dumps({'text': json.loads(line)['input']}), flush=True)"
    )
    assert len(ask(program(tmp_path, lines, session=True), "x" * 10_000_000)[0].text) == 10_000_000


@pytest.mark.process
def test_a_program_that_fails_says_how_and_what_it_said_first_and_last(tmp_path: Path) -> None:
    source = "import sys; print('\\n'.join(f'line {n}' for n in range(100)), file=sys.stderr); sys.exit(7)"
    with pytest.raises(AgentFailed) as caught:
        ask(program(tmp_path, source), "x")
    assert "exit code 7" in str(caught.value)
    assert "line 0" in str(caught.value)
    assert "line 99" in str(caught.value)
    assert "line 50" not in str(caught.value)
    assert not caught.value.transient


@pytest.mark.process
def test_a_program_killed_by_a_signal_says_so(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed, match="SIGTERM"):
        ask(program(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"), "x")


@pytest.mark.process
def test_an_answer_that_is_nested_too_deeply_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReply, match="too deeply"):
        ask(program(tmp_path, "print('[' * 200_000)"), "x")


@pytest.mark.process
def test_no_shell_ever_sees_the_command(tmp_path: Path) -> None:
    agent = CommandAgent([sys.executable, "-c", "import sys; print(sys.argv[1])", "$HOME; touch x"], cwd=tmp_path)
    assert ask(agent, "x")[0].text == "$HOME; touch x"
    assert not (tmp_path / "x").exists()


@pytest.mark.process
def test_the_environment_and_the_folder_can_be_chosen(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    source = "import os; print(os.environ['MODE'], os.path.basename(os.getcwd()))"
    agent = resolve_agent(
        {"command": [sys.executable, "-c", source], "env": {"MODE": "test"}, "cwd": "inner", "name": "mine"}, tmp_path
    )
    assert ask(agent, "x")[0].text == "test inner"
    assert agent.name == "mine"


@pytest.mark.process
@pytest.mark.parametrize("session", [False, True])
def test_no_child_survives_a_cancelled_send(tmp_path: Path, session: bool) -> None:
    source = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
with open("pids.tmp", "w") as file:
    file.write(f"{os.getpid()} {child.pid}")
os.rename("pids.tmp", "pids")
time.sleep(600)
"""
    agent = program(tmp_path, source, session=session)

    async def hold() -> None:
        async def send() -> None:
            async with agent.session(Case(id="c", turns=(Turn("x"),))) as talk:
                await talk.send(Turn("x"))

        task = asyncio.create_task(send())
        async with asyncio.timeout(30):
            while not (tmp_path / "pids").exists():
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(hold())
    for pid in (tmp_path / "pids").read_text().split():
        assert _is_gone(int(pid))


@pytest.mark.process
def test_what_a_program_leaves_running_is_ended_with_it(tmp_path: Path) -> None:
    source = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(child.pid)
"""
    assert _is_gone(int(ask(program(tmp_path, source), "x")[0].text))


@pytest.mark.process
def test_a_session_is_one_process_that_is_told_one_line_a_turn(tmp_path: Path) -> None:
    first, second = ask(program(tmp_path, LINES, session=True), "a", "b")
    assert (first.text, second.text) == ("0 a", "1 b")
    assert first.state == second.state
    assert first.state is not None
    assert _is_gone(first.state["pid"])


@pytest.mark.process
def test_a_session_that_ends_on_its_own_is_a_failure_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(AgentFailed, match=r"(?s)exit code 3: out of order.*turn 2"):
        ask(program(tmp_path, LINES, session=True), "a", "die")


@pytest.mark.process
def test_a_session_that_failed_once_is_not_asked_again(tmp_path: Path) -> None:
    agent = program(tmp_path, LINES, session=True)

    async def hold() -> None:
        async with agent.session(Case(id="c", turns=(Turn("die"), Turn("x")))) as session:
            with pytest.raises(AgentFailed, match="exit code 3"):
                await session.send(Turn("die"))
            with pytest.raises(AgentFailed, match="no further turn is sent"):
                await session.send(Turn("x"))

    asyncio.run(hold())


def test_a_program_that_is_not_there_is_found_out_at_once(tmp_path: Path) -> None:
    for argv in (["no-such-program-anywhere"], ["./missing"]):
        with pytest.raises(UsageError, match="was not found; write its path"):
            CommandAgent(argv, cwd=tmp_path)


@pytest.mark.process
def test_a_program_that_cannot_be_started_fails_with_the_reason(tmp_path: Path) -> None:
    script = tmp_path / "plain.txt"
    script.write_text("hello")
    with pytest.raises(AgentFailed, match="could not be started"):
        ask(CommandAgent(["./plain.txt"], cwd=tmp_path), "x")


def test_the_fingerprint_changes_with_the_script(tmp_path: Path) -> None:
    before = program(tmp_path, "print(1)")
    assert before.fingerprint == program(tmp_path, "print(1)").fingerprint
    assert before.fingerprint != program(tmp_path, "print(2)").fingerprint
    assert isinstance(before, Agent)


def test_the_fingerprint_changes_with_what_the_script_may_import(tmp_path: Path) -> None:
    def current(*argv: str) -> str:
        return CommandAgent(argv or ("node", "src/agent.mjs"), cwd=tmp_path).fingerprint

    for name in ("src/agent.mjs", "lib/tools.ts", "node_modules/adk/index.js", "package.json", "notes.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    before, by_name = current(), current("npm", "start")
    for name in ("node_modules/adk/index.js", "notes.log"):
        (tmp_path / name).write_text("2")
    assert (current(), current("npm", "start")) == (before, by_name)
    for name in ("src/agent.mjs", "lib/tools.ts", "package.json"):
        (tmp_path / name).write_text("2")
        assert current() != before
        assert current("npm", "start") != by_name
        before, by_name = current(), current("npm", "start")


def test_a_program_whose_files_are_unknown_is_not_reused(tmp_path: Path) -> None:
    agent = CommandAgent([sys.executable, "-m", "json.tool"], cwd=tmp_path)
    assert "whose files are not known" in agent.unfingerprinted_parts[0]
    assert program(tmp_path, "print(1)").unfingerprinted_parts == ()


def test_the_same_script_in_another_folder_is_the_same_agent(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    one, two = (program(folder, "print(1)") for folder in folders)
    assert one.fingerprint == two.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": []}, "command.command is empty"),
        ({"command": 3}, "a list of the program"),
        ({"command": ["python", 3]}, "a list of strings"),
        ({"command": ["python"], "sesion": True}, "did you mean 'session'"),
        ({"command": ["python"], "session": "yes"}, "true or false"),
        ({"command": ["python"], "env": {"A": 1}}, "env.A must be text"),
        ({"command": ["python"], "cwd": "nowhere"}, "no such folder"),
        ({"command": {"session": True}}, "needs 'command'"),
        ("cmd:", "is empty"),
        ("cmd:'unclosed", "cannot be split"),
    ],
)
def test_a_wrong_command_is_refused_with_what_to_write(options: Any, message: str, tmp_path: Path) -> None:
    options = _with_python(options)
    with pytest.raises(UsageError) as caught:
        resolve_agent(options, tmp_path)
    assert message in str(caught.value)


@pytest.mark.process
def test_a_command_line_is_split_by_the_rules_of_the_shell(tmp_path: Path) -> None:
    (tmp_path / "my agent.py").write_text("import sys; print(sys.argv[1:])")
    agent = resolve_agent(f"cmd:{sys.executable} 'my agent.py' --x \"a b\"", tmp_path)
    assert ask(agent, "x")[0].text == "['--x', 'a b']"
    nested = {"command": {"command": f"{sys.executable} 'my agent.py'", "session": False}}
    assert ask(resolve_agent(nested, tmp_path), "x")[0].structured == []


def _with_python(options: Any) -> Any:
    if isinstance(options, dict) and options.get("command") == ["python"]:
        return options | {"command": [sys.executable]}
    return options


def _is_gone(pid: int) -> bool:
    """Whether the process has ended; a zombie that is not collected yet has ended too."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            pass
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return False
