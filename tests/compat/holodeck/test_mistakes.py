"""Whatever is wrong with an agent.yaml and the files it names: one message with its place, exit code 2, nothing run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., tuple[int, str]]

GOOD = {
    "name": "bot",
    "model": '{provider: openai, name: m, endpoint: "http://127.0.0.1:1/v1"}',
    "instructions": "{inline: Be kind}",
    "evaluations": "{metrics: [{type: standard, metric: equality}]}",
    "test_cases": "[{name: one, input: q, ground_truth: a}]",
}


def written(**changes: str | None) -> str:
    """A good file with some keys changed, added or (`None`) left out; each key stands on a line of its own."""
    return "".join(f"{key}: {value}\n" for key, value in {**GOOD, **changes}.items() if value is not None)


def tool(text: str) -> str:
    return written(tools=f"[{{name: t, {text}}}]")


def function(name: str = "f", file: str = "t.py") -> str:
    return tool(f"type: function, file: {file}, function: {name}")


STORE = tool("type: vectorstore, source: docs, embedding_model: e")
SAID = written(instructions="{file: said.md}")

WHOLE_FILES: list[tuple[str | bytes, str]] = [
    ("", "agent.yaml: is empty"),
    ("# nothing but a remark\n", "agent.yaml: is empty"),
    ("- 1\n- 2\n", "agent.yaml: is not a suite in any known format"),
    ("just words", "agent.yaml: is not a suite in any known format"),
    ("name: [", "agent.yaml:1: is not valid YAML"),
    ("name: bot\n\ttab: x\n", "agent.yaml:2: is not valid YAML"),
    (b"\xff\xfe\x00n", "agent.yaml:1: is not UTF-8 text"),
    ("name: " + "[" * 5000, "agent.yaml: is nested too deeply"),
    (written(x="&a [*a]"), "agent.yaml: is not valid YAML: an alias"),
    (written() + "name: again\n", "agent.yaml:6: is not valid YAML: duplicate key 'name'"),
    (written(description="!!python/object/apply:os.system [echo]"), "agent.yaml:6: is not valid YAML"),
    (written(author="3"), "agent.yaml:6: author must be text, not a number"),
    (written(author="''"), "agent.yaml:6: author must not be blank"),
    (written(tols="[]"), "agent.yaml:6: tols is not a known key; did you mean 'tools'?"),
    (written(obserability="{}"), "did you mean 'observability'?"),
    (written(model="gpt-4o"), "agent.yaml:2: model must be an object, not text"),
    (written(model="[]"), "agent.yaml:2: model must be an object, not a list"),
    (written(instructions="[]"), "agent.yaml:3: instructions must be an object, not a list"),
    (written(instructions='{inline: "${NO_SUCH_WORD}"}'), "agent.yaml:3: instructions.inline uses ${NO_SUCH_WORD}"),
    (written(tools="3"), "agent.yaml:6: tools must be a list, not a number"),
    (written(tools="[null]"), "agent.yaml:6: tools[0] must be an object, not nothing"),
    (written(response_format="3"), "agent.yaml:6: response_format must be the JSON Schema of an object"),
    (written(openai="3"), "agent.yaml:6: openai must be an object, not a number"),
    (written(execution="[]"), "agent.yaml:6: execution must be an object, not a list"),
    (written(execution="{verbose: true, quiet: true}"), "execution.quiet cannot be true together with 'verbose'"),
    (written(embedding_provider="{provider: openai, name: e}"), "embedding_provider is not used: there is no tool"),
    (written(test_cases=None, test_cases_file="agent.yaml"), "agent.yaml:5: test_cases_file names this file itself"),
    (written(test_cases=None, test_cases_file="."), "agent.yaml:5: test_cases_file names ., which cannot be read"),
    (written(test_cases=None, test_cases_file='"a\\0b"'), "agent.yaml:5: test_cases_file names a"),
    (written(test_cases=None, test_cases_file="no.yaml"), "test_cases_file names no.yaml, which does not exist"),
    (tool("type: functon, file: t.py, function: f"), "tools[0].type is 'functon'"),
    (tool("type: []"), "tools[0].type must be text, not a list"),
    (tool("type: mcp, transport: websocket, url: ws://h"), "transport is 'websocket', which Proctor does not support"),
    (tool("type: prompt, file: no.txt"), "tools[0].file names no.txt, which cannot be read"),
    (function(), "tools[0].function cannot be found: no file 't.py'"),
]  # fmt: skip

NAMED_FILES: list[tuple[str, str, str | bytes, str]] = [
    (SAID, "said.md", b"\xff\xfe", "agent.yaml:3: instructions.file names said.md, which cannot be read"),
    (SAID, "said.md", "", "agent.yaml:3: instructions.file names said.md, which is empty"),
    (SAID, "said.md", "---\nversion: 1\n---\n", "instructions.file names said.md, which is empty"),
    (SAID, "said.md", "---\nversion: [1\n---\nBe kind", "said.md:2: has front matter"),
    (SAID, "said.md", "---\nversion: 1\nBe kind", "said.md:1: starts with --- but has no closing ---"),
    (SAID, "said.md", "---\nBe kind\n---\nalways", "said.md:1: has text between --- and --- at the start"),
    (function(), "t.py", "def g(): pass", "tools[0].function cannot be found: 't.py:f': t.py has no 'f'"),
    (function(), "t.py", "x = 1\nraise ValueError('boom')", "t.py:2 could not be loaded: ValueError: boom"),
    (function(), "t.py", "import sys\nsys.exit(0)", "t.py:2 could not be loaded: SystemExit: 0"),
    (function(), "t.py", "def f(:", "t.py:1 could not be loaded: SyntaxError"),
    (STORE, "docs/notes.bin", "x", "tools[0].source names docs, which has no file to search"),
    (STORE, "docs/a.txt", " \n", "tools[0].source names docs, which has no text to search"),
    (STORE, "docs/a.json", "{", "a.json cannot be searched: Expecting"),
    (STORE, "docs/a.txt", b"\xff", "a.txt cannot be searched: 'utf-8' codec"),
    (STORE, "docs/a.json", "[" * 100_000, "a.json cannot be searched: maximum recursion"),
    (written(response_format="s.json"), "s.json", "{", "s.json:1: is not valid JSON"),
    (written(test_cases=None, test_cases_file="t.yaml"), "t.yaml", "test_cases_file: t.yaml", "t.yaml:1: test_cases"),
    (written(), "config.yml", "providers: [", "config.yml:1: is not valid YAML"),
    (written(), "config.yml", "providers: 4", "config.yml:1: providers must be an object, not a number"),
    (written(), "config.yml", "providers: {openai: 3}", "config.yml:1: providers.openai must be an object"),
    (written(), "config.yml", "providers: {openai: {temperatur: 1}}", "did you mean 'temperature'?"),
    (written(), "config.yml", "providers: {openai: {api_version: '${NO_SUCH}'}}", "model.api_version uses ${NO_SUCH}"),
    (written(), "config.yml", "mcp_servers: 5", "config.yml:1: mcp_servers must be a list, not a number"),
    (written(), "config.yml", "mcp_servers: [4]", "config.yml:1: mcp_servers[0] must be an object"),
    (written(), "config.yml", "execution: 3", "config.yml:1: execution must be an object"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "complaint"), WHOLE_FILES)
def test_a_file_that_is_wrong_says_where(
    tmp_path: Path, commanded: Command, content: str | bytes, complaint: str
) -> None:
    (tmp_path / "agent.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    code, said = commanded("test", "agent.yaml")
    assert code == 2, said
    assert complaint in said


@pytest.mark.parametrize(("agent", "name", "content", "complaint"), NAMED_FILES)
def test_a_file_that_is_named_and_wrong_says_where(
    tmp_path: Path, commanded: Command, agent: str, name: str, content: str | bytes, complaint: str
) -> None:
    (tmp_path / "agent.yaml").write_text(agent)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    code, said = commanded("test", "agent.yaml")
    assert code == 2, said
    assert complaint in said


def test_more_text_than_can_be_held_in_memory_is_refused(tmp_path: Path, commanded: Command) -> None:
    (tmp_path / "agent.yaml").write_text(STORE)
    (tmp_path / "docs").mkdir()
    with (tmp_path / "docs" / "huge.txt").open("wb") as file:
        file.truncate(60_000_000)
    code, said = commanded("test", "agent.yaml")
    assert code == 2
    assert "agent.yaml:6: tools[0].source has 60 MB of files; the maximum is 50 MB" in said


def test_a_variable_of_another_provider_need_not_be_set(tmp_path: Path, commanded: Command) -> None:
    (tmp_path / "agent.yaml").write_text(written())
    (tmp_path / "config.yml").write_text("providers: {anthropic: {endpoint: '${NO_SUCH_PLACE}'}}")
    code, said = commanded("doctor", "agent.yaml")
    assert code == 0, said


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("{disallowed_tools: [rat]}", "openai disallows 'rat', which the agent does not have; did you mean 'rate'?"),
        ("{permissions: {allowed_tools: [Bash]}}", "openai allows 'Bash', which the agent does not have"),
    ],
)
def test_permissions_that_mean_no_tool_are_refused(
    tmp_path: Path, commanded: Command, block: str, complaint: str
) -> None:
    (tmp_path / "t.py").write_text("def f(city: str) -> int:\n    '''The rate.'''\n    return 3\n")
    tools = "[{name: rate, type: function, file: t.py, function: f}]"
    (tmp_path / "agent.yaml").write_text(written(tools=tools, openai=block))
    code, said = commanded("test", "agent.yaml")
    assert code == 2, said
    assert f"agent.yaml:7: {complaint}" in said


def test_forbidding_what_is_not_there_does_no_harm(tmp_path: Path, commanded: Command) -> None:
    (tmp_path / "agent.yaml").write_text(written(openai="{disallowed_tools: [Bash]}"))
    code, said = commanded("doctor", "agent.yaml")
    assert code == 0, said
