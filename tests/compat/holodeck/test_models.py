"""HoloDeck's models have HoloDeck's field names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from proctor.compat.holodeck import Agent, ConfigLoader, FileInput, TestCaseModel, TestReport, TestResult
from proctor.compat.holodeck.models import FunctionTool, LLMProvider, StandardMetric

FILE = {
    "name": "desk",
    "model": {"provider": "openai", "name": "gpt-4o", "api_key": "${OPENAI_API_KEY}"},
    "instructions": {"inline": "Be kind."},
    "tools": [{"name": "rate", "type": "function", "file": "tools.py", "function": "rate"}],
    "evaluations": {
        "metrics": [{"type": "standard", "metric": "equality"}],
        "model": {"provider": "ollama", "name": "m"},
    },
    "execution": {"llm_timeout": 20},
    "test_cases": [
        {"name": "one", "input": "q", "files": [{"path": "a.pdf", "type": "pdf", "pages": [2]}]},
        {"turns": [{"input": "a", "ground_truth": "b", "evaluations": [{"metric": "bleu"}]}]},
    ],
}  # fmt: skip


def load_agent(folder: Path) -> Agent:
    (folder / "agent.yaml").write_text(yaml.safe_dump(FILE))
    return ConfigLoader().load_agent_yaml(folder / "agent.yaml")


def test_an_agent_is_read_into_its_models(tmp_path: Path) -> None:
    agent = load_agent(tmp_path)
    assert isinstance(agent.model, LLMProvider)
    assert (agent.model.provider, agent.model.temperature) == ("openai", 0.3)
    assert agent.instructions is not None
    assert agent.instructions.inline == "Be kind."
    assert agent.evaluations is not None
    assert [metric.metric for metric in agent.evaluations.metrics if isinstance(metric, StandardMetric)] == ["equality"]
    assert agent.tools is not None
    assert isinstance(agent.tools[0], FunctionTool)
    assert agent.execution is not None
    assert agent.execution.llm_timeout == 20
    one, talk = agent.test_cases or []
    assert one.files is not None
    assert (one.files[0].type, one.files[0].pages) == ("pdf", [2])
    assert talk.turns is not None
    assert (talk.turns[0].ground_truth, talk.name) == ("b", None)
    assert talk.turns[0].evaluations is not None


def test_a_key_is_shown_in_no_dump(tmp_path: Path) -> None:
    dumped = load_agent(tmp_path).model_dump()
    assert dumped["model"]["name"] == "gpt-4o"
    assert "OPENAI_API_KEY" not in repr(dumped)


def test_a_test_that_was_read_may_be_changed_before_it_is_run(tmp_path: Path) -> None:
    from proctor.compat.holodeck.reader import agent_suite

    agent = load_agent(tmp_path)
    agent.test_cases = [TestCaseModel(name="mine", input="What?", ground_truth="That.")]
    [case] = agent_suite(agent).cases
    assert (case.id, case.turns[0].input, case.turns[0].expected.output) == ("mine", "What?", "That.")


def test_an_agent_may_be_made_by_hand(tmp_path: Path) -> None:
    from proctor.compat.holodeck.reader import agent_suite

    agent = Agent.model_validate(FILE)
    suite = agent_suite(agent, tmp_path / "agent.yaml")
    assert [case.id for case in suite.cases] == ["one", "test-2"]
    assert isinstance(suite.agent, dict)
    assert suite.agent["holodeck"]["model"]["api_key"] == "${OPENAI_API_KEY}"


def test_results_have_a_schema_and_fields_that_can_be_set() -> None:
    assert "results" in TestReport.model_json_schema()["properties"]
    result = TestResult(test_input="q")
    result.passed = True
    assert result.passed
    with pytest.raises(ValidationError, match="tets_input"):
        TestResult.model_validate({"tets_input": "q"})
    with pytest.raises(ValidationError):
        FileInput(path="a", type="pfd")  # type: ignore[arg-type]


@pytest.mark.process
def test_the_modules_of_holodeck_have_its_models(tmp_path: Path) -> None:
    script = (
        "from holodeck.models.agent import Agent\n"
        "from holodeck.models.llm import LLMProvider\n"
        "from holodeck.models.evaluation import EvaluationConfig\n"
        "print(Agent.__name__, LLMProvider.__name__, EvaluationConfig.__name__)\n"
    )
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, "-m", "proctor.compat.aliases", "script.py"]
    environment = {"PROCTOR_ALIASES": "holodeck", "PATH": ""}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "Agent LLMProvider EvaluationConfig\n", done.stderr
