"""Judges on the command line: who judges, what it costs, and what each score rests on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import COMMAND
from judge_server import ModelRequest, RawResponse, hangs, judge_server, refuses, says, unauthorized
from judged_projects import judge_at, marks, write_project

Command = Callable[..., Any]
SECRET = "sk-proj-0123456789abcdefghij"


def test_running_twice_asks_the_judge_once_and_says_so(proctor: Command, project: Path) -> None:
    with judge_server(marks) as server:
        write_project(project, judge_at(server))
        first = proctor("test", "desk.json")
        assert (first.code, len(server.requests)) == (0, 3)
        assert "judge openai:scripted: 3 calls, 360 tokens" in first.out
        second = proctor("test", "desk.json")
        assert (second.code, len(server.requests)) == (0, 3)
        assert "judge openai:scripted: 0 calls (3 from cache)" in second.out
        third = proctor("rescore")
        assert (third.code, len(server.requests)) == (0, 3)
        assert "judge openai:scripted: 0 calls (3 from cache)" in third.out


def test_answers_shared_within_a_run_are_not_said_to_come_from_a_cache_that_was_empty(
    proctor: Command, project: Path
) -> None:
    with judge_server(marks) as server:
        write_project(project, judge_at(server))
        first = proctor("test", "desk.json", "--repeat", "3", "--json", "r.json")
        assert len(server.requests) == 3
        assert "judge openai:scripted: 3 calls (6 shared), 360 tokens" in first.out
        (judge,) = json.loads((project / "r.json").read_text(encoding="utf-8"))["run"]["judges"]
        assert (judge["calls"], judge["cached"], judge["shared"]) == (3, 0, 6)
        assert "0 calls (9 from cache)" in proctor("rescore").out


def test_every_report_names_the_judge(proctor: Command, project: Path) -> None:
    with judge_server(marks) as server:
        write_project(project, judge_at(server))
        proctor("test", "desk.json", "--md", "r.md", "--html", "r.html", "--json", "r.json")
    assert "| Judge openai:scripted | 3 calls, 360 tokens" in (project / "r.md").read_text(encoding="utf-8")
    assert "openai:scripted: 3 calls" in (project / "r.html").read_text(encoding="utf-8")
    report = json.loads((project / "r.json").read_text(encoding="utf-8"))
    (judge,) = report["run"]["judges"]
    assert (judge["model"], judge["scores"], judge["calls"], judge["cached"]) == ("openai:scripted", 3, 3, 0)
    assert report["trials"][0]["scores"][0]["details"]["judge"]["model"] == "openai:scripted"


def test_a_failure_is_explained_with_the_judges_name(proctor: Command, project: Path) -> None:
    with judge_server({"mark": 0.2, "reason": "it is rude"}) as server:
        write_project(project, judge_at(server), cases=1)
        ended = proctor("test", "desk.json", "--md", "r.md", "--html", "r.html")
    assert ended.code == 1
    assert "0.20 < 0.50 (judge openai:scripted): it is rude" in ended.out
    assert "- **Marked (judge openai:scripted):** it is rude" in (project / "r.md").read_text(encoding="utf-8")
    assert "<small>judge openai:scripted</small>" in (project / "r.html").read_text(encoding="utf-8")


def test_the_judge_of_the_command_line_beats_the_suites(proctor: Command, project: Path) -> None:
    with judge_server(marks):
        write_project(project, "openai:gpt-5-mini")
        ended = proctor("test", "desk.json", "--judge", "nobody:at-all")
    assert ended.code == 2
    assert "error: --judge:" in ended.err
    assert "nobody" in ended.err


@pytest.mark.parametrize("how", ["--judge", "PROCTOR_JUDGE"])
def test_a_judge_with_options_can_be_named_where_only_text_can_stand(
    proctor: Command, project: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with judge_server(marks) as server:
        write_project(project)
        written = json.dumps(judge_at(server, samples=3))
        if how == "PROCTOR_JUDGE":
            monkeypatch.setenv(how, written)
        ended = proctor("test", "desk.json", *([how, written] if how == "--judge" else []))
        assert (ended.code, len(server.requests)) == (0, 3 * 2)
    assert "judge openai:scripted: 6 calls" in ended.out


@pytest.mark.parametrize(
    "judge", ["", "   ", "gpt", ":", "openai:", "embeded", "local:/no/such.gguf", "{", '{"model": 3}', '{"samples": 3}']
)
def test_a_judge_that_is_none_is_a_usage_error_and_nothing_is_run(proctor: Command, project: Path, judge: str) -> None:
    write_project(project)
    ended = proctor("test", "desk.json", "--judge", judge)
    assert ended.code == 2
    assert "judge" in ended.err
    assert not (project / ".proctor" / "results.db").exists()


@pytest.mark.parametrize("budget", ["0", "-1", "nan", "inf", "much"])
def test_a_budget_must_be_an_amount_of_money(proctor: Command, project: Path, budget: str) -> None:
    write_project(project)
    assert proctor("test", "desk.json", "--budget", budget).code == 2


def test_a_spent_budget_ends_the_run_early_and_resume_goes_on(proctor: Command, project: Path) -> None:
    with judge_server(marks) as server:
        write_project(project, judge_at(server), cases=4)
        agent = (
            "from proctor import Reply, Usage\ndef agent(question): return Reply(question, usage=Usage(1, 1, 0.6))\n"
        )
        (project / "app" / "desk.py").write_text(agent, encoding="utf-8")
        stopped = proctor("test", "desk.json", "-j", "1", "--budget", "1")
        assert stopped.code == 4
        assert "stopped: the budget of $1.00 is spent ($1.20); 2 of 4 trials did not run" in stopped.out
        assert "the cost of 2 judge calls is unknown and not counted" in stopped.out
        resumed = proctor("test", "desk.json", "-j", "1", "--budget", "1", "--resume")
        assert (resumed.code, len(server.requests)) == (4 if "stopped" in resumed.out else 0, 4)
        assert "4 cases: 4 passed" in resumed.out


def test_judge_and_budget_can_stand_in_the_project_file(proctor: Command, project: Path) -> None:
    with judge_server(marks) as server:
        write_project(project)
        (project / "proctor.toml").write_text(
            f'budget = 2.5\njudge = {{model = "openai:scripted", base_url = "{server.url}"}}\n', encoding="utf-8"
        )
        assert proctor("test", "desk.json").code == 0
        assert len(server.requests) == 3
        report = json.loads(proctor("doctor", "--json").out)
    assert report["judge"]["origin"].endswith("proctor.toml")
    assert report["judge"]["ok"] is True


@pytest.mark.parametrize("text", ["judge = 3", "judge = true", 'budget = "much"', "budget = 0", "budget = nan"])
def test_a_project_file_that_names_no_judge_or_amount_is_a_usage_error(
    proctor: Command, project: Path, text: str
) -> None:
    write_project(project)
    (project / "proctor.toml").write_text(text, encoding="utf-8")
    ended = proctor("test", "desk.json")
    assert ended.code == 2
    assert "proctor.toml" in ended.err


def test_doctor_says_who_would_judge_and_what_is_missing(
    proctor: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert "judge                rules (default): ready" in proctor("doctor").out
    monkeypatch.setenv("PROCTOR_JUDGE", "openai:gpt-5-mini")
    ended = proctor("doctor")
    assert ended.code == 2
    assert "judge                openai:gpt-5-mini (PROCTOR_JUDGE): " in ended.out
    assert "OPENAI_API_KEY" in ended.out
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    ended = proctor("doctor")
    assert (ended.code, SECRET in ended.out) == (0, False)


def test_doctor_checks_the_judges_of_the_suites_it_is_given(proctor: Command, project: Path) -> None:
    write_project(project, "nobody:at-all")
    ended = proctor("doctor", "desk.json")
    assert ended.code == 2
    assert "nobody" in ended.out


def test_show_says_what_each_judged_score_rests_on(proctor: Command, project: Path) -> None:
    with judge_server(marks) as server:
        write_project(project, judge_at(server))
        proctor("test", "desk.json")
    brief = proctor("show", "--judge-calls", "-k", "case-2")
    assert brief.code == 0
    assert "desk/case-2  Marked 1.00" in brief.out
    assert "case-1" not in brief.out
    assert "mark v1 by openai:scripted" in brief.out
    assert "case 2" in brief.out
    assert "You are an evaluator" not in brief.out
    full = proctor("show", "--judge-calls", "--case", "case-2", "-v")
    assert "You are an evaluator" in full.out
    assert '"mark": 1.0' in full.out


def test_show_tells_of_samples_and_votes(proctor: Command, project: Path) -> None:
    replies = [{"mark": 1.0, "reason": "fine"}, {"mark": 0.0, "reason": "poor"}, {"mark": 1.0, "reason": "good"}]
    with judge_server(replies) as server:
        write_project(project, judge_at(server, samples=3, concurrency=1), cases=1)
        proctor("test", "desk.json")
    ended = proctor("show", "--judge-calls")
    assert ended.out.count("vote") == 3
    assert "sample 2" in ended.out


def test_judge_calls_as_json_have_prompts_and_replies_and_no_keys(proctor: Command, project: Path) -> None:
    reply = json.dumps({"mark": 1.0, "reason": f"it shows the key {SECRET}"})
    with judge_server(says(reply)) as server:
        write_project(project, judge_at(server), cases=1)
        proctor("test", "desk.json")
    ended = proctor("show", "--judge-calls", "--json", "-")
    assert SECRET not in ended.out
    (score,) = json.loads(ended.out)["scores"]
    (call,) = score["calls"]
    assert (score["case"], score["model"], call["kind"], call["version"]) == ("case-1", "openai:scripted", "mark", 1)
    assert "the answer to question 1" in call["user"]
    assert "it shows the key [secret: " in call["reply"]
    assert SECRET not in proctor("show", "--judge-calls", "-v").out


@pytest.mark.parametrize("reply", ['{"mark": 0.1, "reason": "you sent KEY"}', "you sent KEY, and no object"])
def test_a_key_that_the_judge_repeats_is_in_nothing_that_is_written(
    proctor: Command, project: Path, monkeypatch: pytest.MonkeyPatch, reply: str
) -> None:
    key = "of-no-known-make-4711"
    monkeypatch.setenv("QWEN", key)
    with judge_server(lambda asked: reply.replace("KEY", asked.headers["authorization"].split()[1])) as server:
        write_project(project, judge_at(server, api_key_env="QWEN"), cases=1)
        files = {"json": "r.json", "md": "r.md", "html": "r.html", "junit": "r.xml", "csv": "r.csv"}
        formats = [part for name, file in files.items() for part in (f"--{name}", file)]
        ended = proctor("test", "desk.json", "-v", *formats)
        assert server.requests[0].headers["authorization"] == f"Bearer {key}"
    shown = proctor("show", "--judge-calls", "-v", "--json", "calls.json")
    assert "you sent [secret: " in ended.out
    written = [file for file in project.rglob("*") if file.is_file()]
    assert {file.name for file in written} >= {"r.json", "r.md", "r.html", "r.xml", "r.csv", "calls.json"}
    assert [file.name for file in written if key.encode() in file.read_bytes()] == []
    assert key not in ended.out + ended.err + shown.out + shown.err


def test_embeddings_are_asked_for_once_and_found_again_in_the_next_run(proctor: Command, project: Path) -> None:
    def embeds(asked: ModelRequest) -> RawResponse:
        data = [{"index": place, "embedding": [len(text), 1]} for place, text in enumerate(asked.body["input"])]
        return RawResponse(200, json.dumps({"data": data, "usage": {"prompt_tokens": 7}}).encode())

    with judge_server(embeds) as server:
        embeddings = {"model": "openai:e", "base_url": server.url}
        write_project(project, cases=3, evaluators=[{"EmbeddingSimilarity": {"model": embeddings}}])
        suite = json.loads((project / "desk.json").read_text(encoding="utf-8"))
        suite["cases"] = [{**case, "expected": "a reference that they share"} for case in suite["cases"]]
        (project / "desk.json").write_text(json.dumps(suite), encoding="utf-8")
        first = proctor("test", "desk.json", "--budget", "1")
        asked = [text for request in server.requests for text in request.body["input"]]
        again = proctor("test", "desk.json")
        assert len(server.requests) == 3
    assert len(asked) == len(set(asked)) == 4
    assert "judge openai:e: 3 calls, 21 tokens" in first.out
    assert "the cost of 3 judge calls and 3 answers is unknown" in first.out
    assert "judge openai:e: 0 calls (3 from cache)" in again.out
    assert "the answer to question 1" in proctor("show", "--judge-calls", "-v").out


def test_a_judge_that_gave_no_verdict_is_accounted_for_with_what_it_wrote(proctor: Command, project: Path) -> None:
    with judge_server(says(f"I would rather not, {SECRET}")) as server:
        write_project(project, judge_at(server), cases=1)
        ended = proctor("test", "desk.json", "--json", "r.json")
        assert (ended.code, len(server.requests)) == (4, 2)
    assert "judge openai:scripted: 1 call" in ended.out
    report = json.loads((project / "r.json").read_text(encoding="utf-8"))
    (judge,) = report["run"]["judges"]
    assert (judge["scores"], judge["input_tokens"] > 0) == (0, True)
    (score,) = json.loads(proctor("show", "--judge-calls", "--json", "-").out)["scores"]
    masked = f"[secret: OpenAI key, {len(SECRET)} characters]"
    assert (score["outcome"], score["unfit_reply"]) == ("error", f"I would rather not, {masked}")
    told = proctor("show", "--judge-calls", "-v").out
    assert "I would rather not" in told
    assert SECRET not in told


def test_when_a_whole_jury_abstains_each_is_heard(proctor: Command, project: Path) -> None:
    with judge_server(refuses("not that")) as one, judge_server(unauthorized("who are you")) as two:
        write_project(project, {"jury": [judge_at(one), judge_at(two, temperature=0.5)]}, cases=1)
        ended = proctor("test", "desk.json")
    assert ended.code == 4
    assert "not that" in ended.out
    assert "who are you" in ended.out
    shown = proctor("show", "--judge-calls").out
    assert shown.count("abstained: ") == 2
    assert "call    mark v1 by openai:scripted, 120 tokens" in shown, "what was paid for is told, of use or not"


def test_a_cost_that_is_known_in_part_is_told_as_such(proctor: Command, project: Path) -> None:
    with judge_server(marks) as server:
        priced = judge_at(server) | {"model": "openai:gpt-4o"}
        write_project(project, {"jury": [priced, judge_at(server)]}, cases=1)
        ended = proctor("test", "desk.json", "--json", "r.json")
    assert re.search(r"2 calls, 240 tokens, \$0\.000\d and 1 call of unknown cost", ended.out)
    (judge,) = json.loads((project / "r.json").read_text(encoding="utf-8"))["run"]["judges"]
    assert (judge["unpriced"], judge["cost_usd"] > 0) == (1, True)


def test_what_the_rules_cost_is_not_taken_for_what_the_next_one_does(proctor: Command, project: Path) -> None:
    with judge_server(
        {"statements": [{"text": "The answer.", "claim": "yes", "reason": "", "relevant": "yes"}]}
    ) as server:
        write_project(project, {"cascade": ["rules", judge_at(server)], "band": 1}, evaluators=["AnswerRelevancy"])
        ended = proctor("test", "desk.json")
    assert "judge rules then openai:scripted: 3 calls, 360 tokens, cost unknown" in ended.out
    shown = proctor("show", "--judge-calls").out
    assert "call    statements v2 by rules\n" in shown
    assert "$0.00" not in shown


def test_a_run_without_judges_has_no_judge_calls(proctor: Command, suite: Command) -> None:
    suite()
    proctor("test", "suite.yaml")
    ended = proctor("show", "--judge-calls")
    assert (ended.code, ended.out) == (0, "")
    assert "comes from a judge" in ended.err
    assert json.loads(proctor("show", "--judge-calls", "--json", "-").out)["scores"] == []
    assert proctor("show", "--judge-calls", "--md", "x.md").code == 2


@pytest.mark.process
def test_verdicts_outlive_a_process_that_is_killed(project: Path) -> None:
    """The third request kills the run; the first two answers are on disk, and are not asked for again.

    The process that was killed is the parent. Its child ends at the next heartbeat, and may keep the third answer too.
    """
    running: list[subprocess.Popen[bytes]] = []

    def kills_at_the_third(asked: ModelRequest) -> Any:
        if asked.number == 2:
            running[0].send_signal(signal.SIGKILL)
        return marks(asked)

    with judge_server(kills_at_the_third) as server:
        write_project(project, judge_at(server), cases=4)
        command = [*COMMAND, "test", "desk.json", "-j", "1"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        running.append(subprocess.Popen(command, cwd=project, env=environment, stdout=subprocess.DEVNULL))
        assert running[0].wait(60) == -signal.SIGKILL
        done = subprocess.run(
            [*command, "--resume"],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert len(server.requests) in (3 + 1, 3 + 2)
        calls = "3 calls (1 from cache)" if len(server.requests) == 3 + 1 else "4 calls"
        assert f"judge openai:scripted: {calls}" in done.stdout


def test_a_run_says_why_a_judge_gave_no_score_and_counts_what_it_gave_up(proctor: Command, project: Path) -> None:
    with judge_server(hangs()) as server:
        path = write_project(project, judge_at(server))
        suite = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(suite | {"settings": {"evaluator_timeout": 0.4}}), encoding="utf-8")
        ended = proctor("test", "desk.json", "--json", "r.json")
    assert ended.code == 4
    assert re.search(
        r"gave no score within 0\.4 s; its requests to the judge took [\d.]+ s with \d in flight", ended.out
    )
    assert "3 requests abandoned without an answer (about" in ended.out
    (judge,) = json.loads((project / "r.json").read_text(encoding="utf-8"))["run"]["judges"]
    assert (judge["cut_off"], judge["cut_off_tokens"] > 0) == (3, True)


def test_every_report_shows_the_steps_that_a_judge_worked_out_once(proctor: Command, project: Path) -> None:
    steps = ["Check that the answer is polite.", "Check that the answer repeats the question."]

    def script(asked: ModelRequest) -> dict[str, Any]:
        return {"steps": steps} if "Plan how to assess" in asked.system else {"reason": "so", "mark": 8}

    criteria = "The answer is polite and repeats the question."
    with judge_server(script) as server:
        write_project(project, judge_at(server), evaluators=[{"GEval": {"criteria": criteria}}])
        ended = proctor("test", "desk.json", "--md", "r.md", "--html", "r.html")
    said = f"GEval by openai:scripted: 1. {steps[0]} 2. {steps[1]}"
    assert ended.out.count(f"steps: {said}\n") == 1
    for name in ("r.md", "r.html"):
        assert said in (project / name).read_text(encoding="utf-8").replace("\\", "")
