"""Each key of a metric decides something: the same answer is scored without the key and with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from judge_server import ModelRequest, judge_server, status

import proctor
from proctor.cases.formats.loading import load
from proctor.results.trial import Trial

GRADERS = """
def strict(context):
    return (context.turn_config or {}).get("least", 0) <= len(context.agent_response)


def half(context):
    return 0.6


def breaks(context):
    raise ValueError("no idea")


def hangs(context):
    import threading

    threading.Event().wait()
"""


def scored(
    folder: Path, answer: Any, truth: str | None, *metrics: dict[str, Any], test: Any = (), **agent: Any
) -> Trial:
    """One test, answered so and scored by these metrics."""
    (folder / "graders.py").write_text(GRADERS)
    only = {"name": "one", "input": "What is the total?", "ground_truth": truth, **dict(test)}
    evaluations = {"metrics": list(metrics), **agent.pop("evaluations", {})}
    data = {"name": "bot", "evaluations": evaluations, "test_cases": [only], **agent}
    (folder / "agent.yaml").write_text(yaml.safe_dump(data))
    [suite] = load([folder / "agent.yaml"])
    [trial] = proctor.run(suite, agent=lambda question: answer).trials
    return trial


@pytest.mark.parametrize(
    ("metric", "more", "answer", "truth", "outcomes"),
    [
        ("bleu", {"threshold": 1}, "a b c d", "a b c e", ("error", "failed")),
        ("equality", {"case_insensitive": True}, "YES", "yes", ("failed", "passed")),
        ("equality", {"strip_whitespace": True}, " a  b ", "a b", ("failed", "passed")),
        ("equality", {"strip_punctuation": True}, "yes!", "yes", ("failed", "passed")),
        ("numeric", {"absolute_tolerance": 1}, "41.5", "42", ("failed", "passed")),
        ("numeric", {"relative_tolerance": 0.1}, "40", "42", ("failed", "passed")),
        ("numeric", {"accept_percent": True}, "14%", "0.14", ("failed", "passed")),
        ("numeric", {"accept_thousands_separators": True}, "1,200", "1200", ("failed", "passed")),
        ("equality", {"response_path": "sum.total"}, {"sum": {"total": "42"}}, "42", ("failed", "passed")),
        ("equality", {"enabled": False}, "no", "yes", ("failed", None)),
    ],
)
def test_a_key_of_a_computed_metric_decides(
    tmp_path: Path, metric: str, more: dict[str, Any], answer: Any, truth: str, outcomes: tuple[str, str | None]
) -> None:
    plain = {"type": "standard", "metric": metric}
    other = {"type": "code", "grader": "graders.py:half"}
    without = scored(tmp_path, answer, truth, plain)
    having = scored(tmp_path, answer, truth, {**plain, **more}, other)
    verdicts = {score.evaluator: score.outcome for score in having.scores}
    assert without.outcome == outcomes[0]
    assert verdicts.get(metric) == outcomes[1]


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "code", "grader": "graders.py:breaks"},
        {"type": "standard", "metric": "fluency"},
        {"type": "geval", "name": "n", "criteria": "c"},
        {"type": "rag", "metric_type": "faithfulness"},
    ],
)
def test_fail_on_error_and_enabled_decide_whether_a_broken_metric_counts(
    tmp_path: Path, broken: dict[str, Any]
) -> None:
    good = {"type": "standard", "metric": "equality"}
    test = {"retrieval_context": ["a"]}
    with judge_server(status(400, "no such model")) as server:
        model = {} if "grader" in broken else {"model": {"provider": "openai", "name": "m", "endpoint": server.url}}
        found = [
            scored(tmp_path, "a", "a", {**broken, **model, **more}, good, test=test).outcome
            for more in ({}, {"fail_on_error": False}, {"enabled": False})
        ]
    assert found == ["error", "passed", "passed"]


@pytest.mark.parametrize(
    ("metric_type", "context", "outcome"),
    [
        ("faithfulness", "The total is 42 euros.", "passed"),
        ("faithfulness", "The total is 17 euros.", "failed"),
        ("answer_relevancy", "The total is 17 euros.", "passed"),
    ],
)
def test_an_answer_rests_on_its_passages_as_metric_type_says(
    tmp_path: Path, metric_type: str, context: str, outcome: str
) -> None:
    metric = {"type": "rag", "metric_type": metric_type, "threshold": 0.5}
    trial = scored(tmp_path, "The total is 42 euros.", None, metric, test={"retrieval_context": [context]})
    assert (trial.scores[0].evaluator, trial.outcome) == (metric_type, outcome), trial.scores
    assert trial.scores[0].threshold == 0.5


def test_model_of_a_rag_metric_is_who_judges_it(tmp_path: Path) -> None:
    marks = Marks(5)
    judged(tmp_path, marks, {"type": "rag", "metric_type": "faithfulness"}, test={"retrieval_context": ["a"]})
    assert {asked.body["model"] for asked in marks.asked} == {"judge"}


def test_azure_gets_the_api_version_of_the_judge(tmp_path: Path) -> None:
    marks = Marks(5)
    with judge_server(marks) as server:
        endpoint = server.url.removesuffix("/v1")
        model = {"provider": "azure_openai", "name": "d", "endpoint": endpoint, "api_version": "2030-01-01"}
        scored(tmp_path, "a", "a", {"type": "standard", "metric": "fluency"}, evaluations={"model": model})
    assert "2030-01-01" in marks.asked[0].path


def test_timeout_ms_gives_up_a_judge_that_does_not_answer(tmp_path: Path) -> None:
    from judge_server import hangs

    with judge_server(hangs()) as server:
        model = {"provider": "openai", "name": "m", "endpoint": server.url}
        metric = {"type": "standard", "metric": "fluency", "model": model, "timeout_ms": 200}
        trial = scored(tmp_path, "a", "a", metric)
    assert trial.outcome == "error"
    assert "0.2 s" in str([score.reasoning for score in trial.scores] + [trial.reason])


@pytest.mark.parametrize(
    ("metric", "outcome"),
    [
        ({"grader": "graders.py:half"}, "passed"),
        ({"grader": "graders.py:half", "threshold": 0.7}, "failed"),
        ({"grader": "graders.py:half", "threshold": 0.7, "enabled": False}, "passed"),
        ({"grader": "graders.py:half", "name": "mine"}, "passed"),
    ],
)
def test_a_grader_of_ones_own_decides_as_its_keys_say(tmp_path: Path, metric: dict[str, Any], outcome: str) -> None:
    trial = scored(tmp_path, "a", "a", {"type": "code", **metric}, {"type": "standard", "metric": "equality"})
    assert trial.outcome == outcome
    assert metric.get("enabled") is False or trial.scores[0].evaluator == metric.get("name", "half")


class Marks:
    """A judge on this machine that gives one mark, and keeps what it was asked."""

    def __init__(self, mark: float) -> None:
        self.mark = mark
        self.asked: list[ModelRequest] = []

    def __call__(self, asked: ModelRequest) -> dict[str, Any]:
        self.asked.append(asked)
        return {"mark": self.mark, "reason": "so", "verdict": "no", "steps": ["Look at it."]}

    def heard(self) -> str:
        return "\n".join(asked.system + asked.prompt for asked in self.asked)


def judged(folder: Path, marks: Marks, metric: dict[str, Any], **more: Any) -> Trial:
    with judge_server(marks) as server:
        model = {"provider": "openai", "name": "judge", "endpoint": server.url, **metric.pop("model", {})}
        return scored(folder, "It is 42.", "42", {**metric, "model": model}, **more)


@pytest.mark.parametrize(
    ("more", "score", "outcome"),
    [
        ({}, 0.6, "passed"),
        ({"threshold": 0.7}, 0.6, "failed"),
        ({"threshold": 4}, 0.6, "failed"),
        ({"scale": 10}, 0.3, "failed"),
    ],
)
def test_a_mark_counts_as_scale_and_threshold_say(
    tmp_path: Path, more: dict[str, Any], score: float, outcome: str
) -> None:
    trial = judged(tmp_path, Marks(3), {"type": "standard", "metric": "fluency", **more})
    assert trial.scores[0].value == pytest.approx(score), trial.scores
    assert trial.outcome == outcome


def test_custom_prompt_is_what_the_judge_is_asked(tmp_path: Path) -> None:
    marks = Marks(5)
    judged(tmp_path, marks, {"type": "standard", "metric": "fluency", "custom_prompt": "Is {response} in verse?"})
    assert "in verse?" in marks.heard()


def test_retry_on_failure_asks_a_judge_again_that_made_no_sense(tmp_path: Path) -> None:
    def asked_for(metric: dict[str, Any]) -> int:
        with judge_server(status(400, "the answer to everything")) as server:
            model = {"provider": "openai", "name": "judge", "endpoint": server.url}
            scored(tmp_path, "a", "a", {"type": "standard", "metric": "fluency", "model": model, **metric})
        return len(server.requests)

    assert asked_for({"retry_on_failure": 2}) == 3 * asked_for({})


GEVAL = {"type": "geval", "name": "Tone", "criteria": "It is polite."}


def test_what_a_geval_metric_says_is_what_its_judge_is_asked(tmp_path: Path) -> None:
    marks = Marks(8)
    more = {"evaluation_steps": ["Look for a greeting."], "evaluation_params": ["input", "expected_output"]}
    trial = judged(tmp_path, marks, {**GEVAL, **more, "threshold": 0.9})
    assert (trial.scores[0].evaluator, trial.outcome) == ("Tone", "failed")
    assert "It is polite." in marks.heard()
    assert "Look for a greeting." in marks.heard()
    assert "What is the total?" in marks.heard()
    assert "It is 42." not in marks.heard(), "what was not selected is not shown"


def test_strict_mode_knows_nothing_between_all_and_nothing(tmp_path: Path) -> None:
    steps = {"evaluation_steps": ["Look."], "threshold": 0.5}
    assert judged(tmp_path, Marks(8), {**GEVAL, **steps}).scores[0].value == pytest.approx(0.8)
    assert judged(tmp_path, Marks(8), {**GEVAL, **steps, "strict_mode": True}).scores[0].value == 0.0


@pytest.mark.parametrize(
    ("key", "value", "sent", "as_"),
    [
        ("provider", "anthropic", "path", "/v1/messages"),
        ("name", "other", "model", "other"),
        ("temperature", 0.7, "temperature", 0.7),
        ("top_p", 0.5, "top_p", 0.5),
        ("max_tokens", 77, "max_completion_tokens", 77),
        ("api_key", "${JUDGE_KEY}", "authorization", "Bearer sk-judge"),
        ("auth_provider", "api_key", "model", "judge"),
    ],
)
def test_how_the_judge_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str, value: Any, sent: str, as_: Any
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-judge")
    marks = Marks(5)
    with judge_server(marks) as server:
        endpoint = server.url if value != "anthropic" else server.url.removesuffix("/v1")
        model = {"provider": "openai", "name": "judge", "endpoint": endpoint, key: value}
        metric = {"type": "standard", "metric": "fluency"}
        trial = scored(tmp_path, "It is 42.", "42", metric, evaluations={"model": model})
    assert trial.outcome == "passed", trial.scores
    [asked] = marks.asked
    assert {**asked.body, **asked.headers, "path": asked.path}[sent] == as_


def test_a_configuration_file_says_where_the_judge_of_a_provider_is(tmp_path: Path) -> None:
    marks = Marks(5)
    with judge_server(marks) as server:
        (tmp_path / "config.yml").write_text(yaml.safe_dump({"providers": {"openai": {"endpoint": server.url}}}))
        judge = {"model": {"provider": "openai", "name": "judge"}}
        trial = scored(tmp_path, "a", "a", {"type": "standard", "metric": "fluency"}, evaluations=judge)
    assert trial.outcome == "passed", trial.scores
    assert len(marks.asked) == 1
