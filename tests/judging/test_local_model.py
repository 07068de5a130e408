"""A real model in this process, from its file to a score.

It takes a model of 98 MB and the package that runs it, so it is not part of every run of the tests: `make local-model`
fetches both into an environment of their own and runs these. Any other GGUF file can be named by PROCTOR_TEST_GGUF.
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
from proctor.judging.judge_factory import SharedJudges
from proctor.judging.local_model import serve
from proctor.judging.questions import choose

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "proctor" / "models"
MODEL = Path(os.environ.get("PROCTOR_TEST_GGUF") or CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf")

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
