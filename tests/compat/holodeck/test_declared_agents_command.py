from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from judge_server import hangs
from scripted_model import Conversation, TextReply, ToolCallReply, calls, model_server, says

from proctor.base.installation import install_command

TOOLS = """
def rate(city: str) -> int:
    '''The rate in a city.'''
    return len(city)
"""


def lookup(talk: Conversation) -> TextReply | ToolCallReply:
    return says(f"It is {talk.results[-1]}.") if talk.results else calls("rate", city=talk.user)


def agent(project: Path, **more: Any) -> Path:
    (project / "tools.py").write_text(TOOLS)
    data = {
        "name": "loans",
        "model": {"provider": "openai", "name": "gpt-4o"},
        "instructions": {"inline": "You lend money."},
        "tools": [{"name": "rate", "type": "function", "file": "tools.py", "function": "rate"}],
        "evaluations": {"metrics": [{"type": "standard", "metric": "equality"}]},
        "test_cases": [
            {"name": "oslo", "input": "Oslo", "ground_truth": "It is 4.", "expected_tools": [{"name": "rate"}]}
        ],
        **more,
    }
    path = project / "agent.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    return path


def at(url: str, **more: Any) -> dict[str, Any]:
    return {"provider": "openai", "name": "gpt-4o", "endpoint": url, **more}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_the_agent_that_a_file_describes_is_run(project: Path, proctor: Callable[..., Any]) -> None:
    with model_server(lookup) as server:
        ended = proctor("test", agent(project, model=at(server.url)))
    assert ended.code == 0, ended
    assert "equality 1.00, expected_tools 1.00" in ended.out


def test_an_agent_of_ones_own_beats_the_one_described(project: Path, proctor: Callable[..., Any]) -> None:
    ended = proctor("test", agent(project), "--agent", "oracle")
    assert ended.code == 0, ended


def test_an_agent_that_does_not_answer_is_stopped_in_time(project: Path, proctor: Callable[..., Any]) -> None:
    with model_server(lambda talk: hangs()) as server:
        ended = proctor("test", agent(project, model=at(server.url)), "--timeout", "1")
    assert ended.code == 1, ended
    assert "the agent gave no answer within 1 s" in ended.out


def test_a_missing_key_is_reported_before_anything_runs(project: Path, proctor: Callable[..., Any]) -> None:
    ended = proctor("test", agent(project))
    assert ended.code == 2
    assert "agent.yaml:2: model cannot be used: calling openai needs a key: set OPENAI_API_KEY" in ended.err


def test_a_missing_package_is_reported_with_its_extra(project: Path, proctor: Callable[..., Any]) -> None:
    ended = proctor("test", agent(project, model={"provider": "mistral", "name": "m"}))
    assert ended.code == 2
    assert install_command("mistral") in ended.err


def test_without_a_model_a_file_still_needs_an_agent(project: Path, proctor: Callable[..., Any]) -> None:
    ended = proctor("test", agent(project, model=None))
    assert ended.code == 2
    assert "has no agent; describe one with `model`" in ended.err


def test_a_file_may_say_how_much_is_reported(project: Path, proctor: Callable[..., Any]) -> None:
    with model_server(lookup) as server:
        plainly = proctor("test", agent(project, model=at(server.url)))
        quietly = proctor("test", agent(project, model=at(server.url), execution={"quiet": True}))
        overruled = proctor("test", agent(project, model=at(server.url), execution={"quiet": True}), "-v")
        loudly = proctor("test", agent(project, model=at(server.url), execution={"verbose": True}))
    assert "oslo" in plainly.out
    assert "oslo" not in quietly.out
    assert "oslo" in overruled.out
    assert len(loudly.out) > len(plainly.out)


def test_doctor_shows_each_setting_and_who_says_so(
    project: Path, proctor: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-verysecret")
    monkeypatch.setenv("HOLODECK_FILE_TIMEOUT", "11")
    (project / "config.yml").write_text(
        "providers: {openai: {api_key: '${MY_KEY}', top_p: 0.5}}\nexecution: {cache_dir: kept}\n"
    )
    path = agent(project, execution={"parallel_test_cases": 2})
    ended = proctor("doctor", path, "--json")
    assert ended.code == 0, ended
    [suite] = json.loads(ended.out)["suites"]
    told = {key: (item["value"], Path(item["origin"]).name) for key, item in suite["agents"]["loans"].items()}
    assert told["model.name"] == ("gpt-4o", "agent.yaml")
    assert told["model.api_key"] == ("${MY_KEY}", "config.yml")
    assert told["model.top_p"] == (0.5, "config.yml")
    assert told["model.temperature"] == (0.3, "default")
    assert told["execution.parallel_test_cases"] == (2, "agent.yaml")
    assert told["execution.cache_dir"] == ("kept", "config.yml")
    assert told["execution.file_timeout"] == (11, "HOLODECK_FILE_TIMEOUT")
    assert told["execution.quiet"] == (False, "default")
    shown = proctor("doctor", path)
    assert "execution.parallel_test_cases 2" in " ".join(shown.out.split())
    assert "sk-verysecret" not in ended.out + shown.out


def test_doctor_shows_no_secret_that_was_written_out(project: Path, proctor: Callable[..., Any]) -> None:
    ended = proctor("doctor", agent(project, model=at("http://127.0.0.1:1/v1", api_key="sk-verysecret")))
    assert ended.code == 2
    assert "sk-verysecret" not in ended.out + ended.err
    assert "model.api_key is a secret" in ended.out


def test_a_configuration_file_gives_a_provider_its_address(project: Path, proctor: Callable[..., Any]) -> None:
    with model_server(lookup) as server:
        (project / "config.yml").write_text(yaml.safe_dump({"providers": {"mine": at(server.url, temperature=0.7)}}))
        ended = proctor("test", agent(project))
        assert server.requests[0].body["temperature"] == 0.7
    assert ended.code == 0, ended
