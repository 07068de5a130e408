"""A model file is known by what is in it: what was asked of it and found out about it stays true when it is moved."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from judge_server import judge_server
from logit_server import choice

from proctor.cases.suite import EvaluatorSpec
from proctor.evaluators.registry import build
from proctor.judging.judge_cache import JudgeCache
from proctor.judging.local_model import LocalEndpoint, LocalSpec, known_by_content
from proctor.judging.model_judge import ModelJudge
from proctor.judging.questions import choose
from proctor.running.engine.judges import GIVEN, Choice, with_judge


@pytest.fixture
def models(tmp_path: Path) -> Path:
    for name, content in (("a", b"GGUF one"), ("moved", b"GGUF one"), ("other", b"GGUF two")):
        (tmp_path / f"{name}.gguf").write_bytes(content)
    return tmp_path


def fingerprint(judge: Any) -> str:
    return with_judge(build(EvaluatorSpec("Factuality")), Choice(judge, GIVEN)).fingerprint


@pytest.mark.parametrize(
    "named",
    [
        "local:{}",
        " local: {} ",
        {"model": "local:{}", "reasons": "none"},
        {"jury": ["embedded", "local:{}"]},
        {"cascade": ["embedded", {"model": "local:{}", "max_tokens": 99}]},
    ],
)
def test_scores_and_calibrations_are_kept_under_the_content_of_a_model_file(models: Path, named: Any) -> None:
    def judge(file: str) -> Any:
        def filled(part: Any) -> Any:
            if isinstance(part, str):
                return part.replace("{}", str(models / file))
            if isinstance(part, list):
                return [filled(item) for item in part]
            return {name: filled(value) for name, value in part.items()} if isinstance(part, dict) else part

        return filled(named)

    before = fingerprint(judge("a.gguf"))
    assert fingerprint(judge("moved.gguf")) == before
    assert fingerprint(judge("other.gguf")) != before
    assert fingerprint("embedded") != before


def test_another_model_in_the_place_of_one_is_another_judge(models: Path) -> None:
    judge = f"local:{models / 'a.gguf'}"
    before = fingerprint(judge)
    (models / "a.gguf").write_bytes(b"GGUF other")
    assert fingerprint(judge) != before


@pytest.mark.parametrize("named", ["local:http://127.0.0.1:1", "local:/none/such.gguf", "local:", "local:."])
def test_a_server_or_missing_file_is_identified_by_its_name(named: str) -> None:
    assert known_by_content(named) == named


def test_answers_are_found_again_when_the_file_was_moved(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    question = choose("right", "Is it?", {"Y": "", "N": ""}, {"answer": "Paris"}, choice_scores={"Y": 1.0})
    kept: dict[str, Any] = {}

    class Store:
        find = staticmethod(kept.get)
        keep = staticmethod(kept.__setitem__)

    with judge_server(choice({"Y": 0.9, "N": 0.1})) as server:
        monkeypatch.setattr("proctor.judging.local_model.serve", lambda *_: server.root)
        for name in ("a", "moved", "other"):
            judge = ModelJudge(LocalEndpoint(LocalSpec(models / f"{name}.gguf")), cache=JudgeCache(Store()))
            asyncio.run(judge.ask(question))
        assert len(server.requests) == 2
    assert len(kept) == 2


def test_a_server_that_tells_nothing_about_its_model_is_asked_once_and_one_that_was_down_again() -> None:
    looks: list[str] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            looks.append(self.path)
            self.send_error(404)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = LocalEndpoint(LocalSpec(f"http://127.0.0.1:{server.server_port}"))
        assert endpoint.parameters == endpoint.parameters
        server.shutdown()
    assert looks == ["/v1/models"]

    down = LocalEndpoint(LocalSpec(f"http://127.0.0.1:{server.server_port}"))
    assert "model" not in down.parameters
    with ThreadingHTTPServer(("127.0.0.1", server.server_port), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert "model" not in down.parameters
        server.shutdown()
    assert looks == ["/v1/models"] * 2
