"""`proctor test --gate` and `proctor baseline` as a project uses them, in a real git repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import run_proctor

pytestmark = pytest.mark.process

Command = Callable[..., Any]

AGENT = """
from proctor import Reply, ToolCall

REFUND = {refund!r}
BETTER = {better!r}


def agent(question):
    if question == "refund":
        calls = (ToolCall("find_order", {{"id": 7}}), ToolCall("refund", {{"order": REFUND}}))
        return Reply("Done." if REFUND == 7 else "I cannot do that. Sorry.", tool_calls=calls)
    if question in ("slow", "hard"):
        return "yes" if BETTER else "no"
    return "hello"
"""

SUITE = """
agent: app.py:agent
cases:
  - {id: refund, input: refund, expected: Done.}
  - {id: slow, input: slow, expected: "yes"}
  - {id: hard, input: hard, expected: "yes"}
  - {id: greet, input: hi, expected: hello}
  - {id: greet-again, input: hey, expected: hello}
"""


def git(folder: Path, *words: str) -> str:
    identity = {f"GIT_{who}_{what}": "t@e.st" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def write_agent(project: Path, *, refund: int = 7, better: bool = False) -> None:
    (project / "app.py").write_text(AGENT.format(refund=refund, better=better), encoding="utf-8")


def report(project: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project / "gate.json").read_text(encoding="utf-8"))["gate"]
    return found


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite and a baseline of ten trials a case."""
    folder = tmp_path_factory.mktemp("recorded")
    write_agent(folder)
    (folder / "desk.yaml").write_text(SUITE, encoding="utf-8")
    tested = run_proctor("test", "desk.yaml", "--repeat", "10", "-q", cwd=folder)
    assert tested.code == 1, tested.out + tested.err  # two cases have always failed
    assert run_proctor("baseline", "accept", cwd=folder).code == 0
    return folder


@pytest.fixture
def shop(project: Path, recorded: Path) -> Path:
    """A copy of that folder."""
    shutil.copytree(recorded, project, dirs_exist_ok=True)
    return project


def test_a_branch_is_gated_accepted_and_merged_with_a_baseline_that_main_changed_too(
    shop: Path, proctor: Command, proctor_process: Command
) -> None:
    (shop / ".gitattributes").write_text("*.baseline.jsonl merge=union\n", encoding="utf-8")
    (shop / ".gitignore").write_text("gate.json\n__pycache__/\n", encoding="utf-8")
    git(shop, "init", "-q", "-b", "main")
    git(shop, "add", "-A")
    git(shop, "commit", "-qm", "a baseline")

    git(shop, "checkout", "-qb", "change")
    write_agent(shop, refund=8, better=True)
    red = proctor_process("test", "desk.yaml", "--gate", "--json", "gate.json")
    assert red.code == 1
    assert "refund regressed: 10/10 in the baseline" in red.out
    found = report(shop)
    standings = {case["case"]: case["standing"] for case in found["cases"]}
    assert standings == {
        "refund": "proven",
        "slow": "improved",
        "hard": "improved",
        "greet": "as_usual",
        "greet-again": "as_usual",
    }
    parted = found["cases"][0]["divergence"]
    assert (parted["kind"], parted["text"]) == ("argument", "refund: order 7 → 8")
    assert "3 cases restarted" in proctor("baseline", "accept").out
    assert proctor_process("test", "desk.yaml", "--gate", "-q").code == 0
    git(shop, "commit", "-qam", "refund by another number, and know two answers more")

    git(shop, "checkout", "-q", "main")
    proctor_process("test", "desk.yaml", "--repeat", "3", "-q")
    assert proctor("baseline", "accept").code == 0
    git(shop, "commit", "-qam", "three trials more")

    git(shop, "merge", "-q", "--no-edit", "change")
    merged = (shop / "desk.baseline.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(set(merged)) == 15, "five cases, in a run before, on main and on the branch; a union may repeat a line"
    green = proctor_process("test", "desk.yaml", "--gate", "--json", "gate.json")
    assert green.code == 0, green.out
    assert report(shop)["verdict"] == "no_regression"


def test_two_versions_of_a_baseline_conflict_without_the_attribute_and_the_message_says_what_to_do(
    shop: Path, proctor_process: Command
) -> None:
    path = shop / "desk.baseline.jsonl"
    ours = path.read_text(encoding="utf-8")
    path.write_text(f"<<<<<<< HEAD\n{ours}=======\n{ours}>>>>>>> change\n", encoding="utf-8")
    ended = proctor_process("test", "desk.yaml", "--gate")
    assert ended.code == 2
    assert "desk.baseline.jsonl:1: merge conflict marker" in ended.err
    assert "merge=union" in ended.err


def test_accepting_a_run_twice_changes_nothing(shop: Path, proctor: Command) -> None:
    before = (shop / "desk.baseline.jsonl").read_bytes()
    assert "nothing changed" in proctor("baseline", "accept").out
    assert (shop / "desk.baseline.jsonl").read_bytes() == before


def test_only_suspects_are_asked_again(shop: Path, proctor_process: Command) -> None:
    write_agent(shop, refund=8)
    proctor_process("test", "desk.yaml", "--gate", "--json", "gate.json")
    asked = {case["case"]: case["fresh_trials"] for case in report(shop)["cases"]}
    assert asked.pop("refund") >= 2
    assert set(asked.values()) == {0}


def test_a_gated_run_is_shown_again_with_its_verdict(shop: Path, proctor: Command, proctor_process: Command) -> None:
    write_agent(shop, refund=8)
    proctor_process("test", "desk.yaml", "--gate", "-q")
    again = proctor("show", "--md", "-")
    assert "Gate: regression" in again.out
    assert "find\\_order" not in again.out.split("## Test results")[0]
    assert "refund: order 7" in again.out


def test_a_case_that_changed_has_no_past_and_the_report_says_so(shop: Path, proctor: Command) -> None:
    text = (shop / "desk.yaml").read_text(encoding="utf-8")
    (shop / "desk.yaml").write_text(text.replace("expected: hello}", "expected: hi there}", 1), encoding="utf-8")
    ended = proctor("test", "desk.yaml", "--gate")
    assert ended.code == 1, "a case without a past is held to the suite's own criteria"
    assert "1 case: the case changed since the baseline was recorded" in ended.out
    assert "new and failing: greet" in ended.out and "REGRESSION" not in ended.out


def write_checks(project: Path, *, passes: str) -> None:
    """Add an evaluator that passes the answers for which an expression is true."""
    code = f"def polite(evaluable):\n    return {passes}\n"
    (project / "checks.py").write_text(code, encoding="utf-8")
    with (project / "desk.yaml").open("a", encoding="utf-8") as suite:
        suite.write("evaluators: [ExactMatch, checks.py:polite]\n")


def test_an_added_evaluator_leaves_the_history_of_the_others(shop: Path, proctor: Command) -> None:
    write_checks(shop, passes="True")
    ended = proctor("test", "desk.yaml", "--gate", "--json", "gate.json")
    assert ended.code == 0, ended.out
    cases = {case["case"]: case for case in report(shop)["cases"]}
    assert {case["past_trials"] for case in cases.values()} == {10}
    assert cases["slow"]["standing"] == "as_usual", "it has always failed"


def test_a_regression_under_an_earlier_evaluator_is_found_although_another_was_added(
    shop: Path, proctor_process: Command
) -> None:
    write_checks(shop, passes="True")
    write_agent(shop, refund=9)
    ended = proctor_process("test", "desk.yaml", "--gate")
    assert ended.code == 1 and "gate: REGRESSION" in ended.out and "refund" in ended.out


def test_a_new_evaluator_that_fails_is_not_a_regression(shop: Path, proctor: Command) -> None:
    write_checks(shop, passes="evaluable.output != 'hello'")
    ended = proctor("test", "desk.yaml", "--gate")
    assert ended.code == 1
    assert "gate: A NEW CASE FAILS" in ended.out and "REGRESSION" not in ended.out


def test_a_changed_threshold_has_no_past(shop: Path, proctor: Command) -> None:
    with (shop / "desk.yaml").open("a", encoding="utf-8") as suite:
        suite.write("evaluators: [{ExactMatch: {threshold: 0.9}}]\n")
    ended = proctor("test", "desk.yaml", "--gate")
    assert "its evaluators, thresholds or judge changed since the baseline was recorded" in ended.out


def test_a_renamed_case_keeps_its_past(shop: Path, proctor: Command) -> None:
    text = (shop / "desk.yaml").read_text(encoding="utf-8").replace("id: slow,", "id: sluggish,")
    (shop / "desk.yaml").write_text(text, encoding="utf-8")
    assert proctor("test", "desk.yaml", "--gate", "-q").code == 0


def test_a_run_is_accepted_for_a_reason_and_one_case_restarts(shop: Path, proctor: Command) -> None:
    assert proctor("test", "desk.yaml", "-q").code == 1
    ended = proctor("baseline", "accept", "--restart-case", "refund", "--reason", "refunds need an order now")
    assert ended.code == 0 and "1 case restarted" in ended.out
    shown = proctor("baseline", "show", "desk.yaml").out.splitlines()
    [refund] = [line for line in shown if "desk/refund" in line]
    assert "1/1 passed" in refund and 'accepted: "refunds need an order now"' in refund
    assert any("11/11 passed" in line for line in shown if "greet" in line)
    wrong = proctor("baseline", "accept", "--restart-case", "refunds")
    assert wrong.code == 2 and "did you mean 'refund'?" in wrong.err


def test_a_new_description_tag_or_place_in_the_file_leaves_the_past(shop: Path, proctor: Command) -> None:
    text = (shop / "desk.yaml").read_text(encoding="utf-8").replace("id: greet,", "id: greet, tags: [x],")
    (shop / "desk.yaml").write_text(f"\n\n{text}", encoding="utf-8")
    assert proctor("test", "desk.yaml", "--gate", "-q").code == 0


def test_without_a_past_nothing_is_said_but_how_to_get_one(project: Path, suite: Command, proctor: Command) -> None:
    suite()
    ended = proctor("test", "--gate")
    assert ended.code == 3
    assert "record one with `proctor baseline accept`" in ended.out


def test_another_run_can_be_the_baseline(shop: Path, proctor: Command) -> None:
    (shop / "desk.baseline.jsonl").unlink()
    assert proctor("test", "desk.yaml", "--gate", "--baseline", "last", "-q").code == 0
    assert proctor("test", "desk.yaml", "--gate", "--baseline", "nowhere.jsonl").code == 2
    assert proctor("test", "desk.yaml", "--gate", "--baseline", "nothing").code == 2


def test_a_baseline_elsewhere_is_written_and_read(shop: Path, proctor: Command) -> None:
    (shop / "desk.baseline.jsonl").unlink()
    assert proctor("baseline", "accept", "--baseline", "cache/usual.jsonl").code == 0
    assert proctor("test", "desk.yaml", "--gate", "--baseline", "cache/usual.jsonl", "-q").code == 0
    assert not (shop / "desk.baseline.jsonl").exists()


def test_a_folder_with_baselines_is_still_a_folder_of_suites(shop: Path, proctor: Command) -> None:
    assert proctor("test", "--gate", "-q").code == 0


def test_what_does_not_count_any_more_is_taken_out(shop: Path, proctor: Command) -> None:
    text = (shop / "desk.yaml").read_text(encoding="utf-8").splitlines()
    (shop / "desk.yaml").write_text("\n".join(text[:-1]).replace("input: hi,", "input: hi there,"), encoding="utf-8")
    assert "2 lines would be removed, 3 kept" in proctor("baseline", "prune", "--dry-run").out
    assert "2 lines removed, 3 kept" in proctor("baseline", "prune").out
    shown = json.loads(proctor("baseline", "show", "--json").out)
    assert [row["case"] for row in shown] == ["hard", "refund", "slow"]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[:-40], "desk.baseline.jsonl:5: not a complete line of a baseline; the file was cut off"),
        (
            lambda text: text.replace('"passes":10', '"passes":11', 1),
            "11 passes of 10 trials is impossible",
        ),
        (lambda text: text.replace('"passes":10', '"passes":"ten"', 1), "passes must be a whole number"),
        (lambda text: text.replace('"passes"', '"passed"', 1), "unknown key 'passed'; did you mean 'passes'"),
        (lambda text: text.replace('"v":1', '"v":2'), "written by a newer Proctor"),
        (lambda text: text.replace('"v":1,', ""), "no version"),
        (lambda text: "[" * 5000, "not a complete line"),
        (lambda text: "[]", "not a JSON object"),
        (lambda text: text.replace('"score":[10', '"score":[-1', 1), "score must be [count, mean"),
    ],
)
def test_a_damaged_baseline_is_refused_in_one_sentence_and_left_as_it_is(
    shop: Path, proctor: Command, damage: Callable[[str], str], words: str
) -> None:
    path = shop / "desk.baseline.jsonl"
    path.write_text(damage(path.read_text(encoding="utf-8")), encoding="utf-8")
    before = path.read_bytes()
    for command in (("test", "desk.yaml", "--gate"), ("baseline", "accept"), ("baseline", "show", "desk.yaml")):
        ended = proctor(*command)
        assert ended.code == 2, command
        assert words in ended.err
        assert len(ended.err.strip().splitlines()) == 1
        assert path.read_bytes() == before


def test_an_interrupted_run_is_not_accepted(shop: Path, proctor: Command) -> None:
    before = (shop / "desk.baseline.jsonl").read_bytes()
    write_agent(shop, refund=8)
    proctor("test", "desk.yaml", "--maxfail", "1", "-j", "1", "-q")
    ended = proctor("baseline", "accept")
    assert ended.code == 2
    assert "was interrupted after 1 of 5 trials; finish it with `proctor test --resume`" in ended.err
    assert proctor("test", "desk.yaml", "--gate", "--baseline", "last").code == 2
    assert (shop / "desk.baseline.jsonl").read_bytes() == before


def test_errors_are_no_regression_and_nothing_to_accept(shop: Path, proctor: Command) -> None:
    before = (shop / "desk.baseline.jsonl").read_bytes()
    (shop / "app.py").write_text("def agent(question):\n    return object()\n", encoding="utf-8")
    gated = proctor("test", "desk.yaml", "--gate")
    assert gated.code == 4
    assert "ended in errors only" in gated.out
    accepted = proctor("baseline", "accept")
    assert accepted.code == 4
    assert "has no new trial that passed or failed" in accepted.err
    assert (shop / "desk.baseline.jsonl").read_bytes() == before


def test_answers_that_were_heard_before_are_not_accepted_twice(shop: Path, proctor: Command) -> None:
    proctor("rescore", "-q")
    ended = proctor("baseline", "accept")
    assert ended.code == 4
    assert "has no new trial" in ended.err


def test_the_gate_says_what_it_cannot_be_combined_with(shop: Path, proctor: Command) -> None:
    assert "--gate and --repeat cannot be combined" in proctor("test", "--gate", "--repeat", "3").err
    assert "--gate and --reuse cannot be combined" in proctor("test", "--gate", "--reuse").err
    assert "--gate-alpha needs --gate" in proctor("test", "--gate-alpha", "0.1").err
    assert proctor("test", "--gate", "--gate-alpha", "1.5").code == 2


def test_a_gate_that_may_ask_only_once_more_is_inconclusive_and_says_what_it_would_take(
    shop: Path, proctor: Command
) -> None:
    write_agent(shop, refund=8)
    ended = proctor("test", "desk.yaml", "--gate", "--gate-trials", "1")
    assert ended.code == 3
    assert "INCONCLUSIVE  refund may have regressed" in ended.out
    assert "would prove it" in ended.out


def test_a_gated_run_that_was_killed_is_continued_with_what_it_has(shop: Path, proctor_process: Command) -> None:
    broken = AGENT.format(refund=8, better=False).replace(
        "def agent(question):",
        "import os, signal\n\ndef agent(question):\n    with open('asked', 'a') as asked:\n"
        "        asked.write(question + '\\n')\n"
        "    if open('asked').read().count('refund') == int(os.environ.get('DIE_AT', 0)):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)",
    )
    (shop / "app.py").write_text(broken, encoding="utf-8")
    assert proctor_process("test", "desk.yaml", "--gate", "-j", "1", DIE_AT="3").code != 1
    ended = proctor_process("test", "desk.yaml", "--gate", "--resume", "--json", "gate.json")
    assert ended.code == 1, ended.out
    asked = (shop / "asked").read_text(encoding="utf-8").splitlines()
    assert asked.count("hi") == 1
    case = report(shop)["cases"][0]
    assert asked.count("refund") == 1 + case["fresh_trials"] + 1, "only the trial that was under way is made again"


def test_a_gated_run_that_goes_on_with_further_trials_alone_starts_its_agent(
    shop: Path, proctor_process: Command
) -> None:
    desk = AGENT.format(refund=8, better=False).replace(
        "def agent(question):", "import contextlib, os, signal\n\n\ndef answer(question):"
    )
    desk += """

class Desk:
    name = "app.py:agent"
    asked = 0

    async def start(self):
        self.started = True

    @contextlib.asynccontextmanager
    async def session(self, case):
        yield self

    async def send(self, turn):
        assert self.started
        Desk.asked += turn.input == "refund"
        if Desk.asked == int(os.environ.get("DIE_AT", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
        found = answer(turn.input)
        return found if isinstance(found, Reply) else Reply(found)


agent = Desk()
"""
    (shop / "app.py").write_text(desk, encoding="utf-8")
    first = proctor_process("test", "desk.yaml", "--gate", "-j", "1", DIE_AT="3")
    assert first.code != 1, first.out
    ended = proctor_process("test", "desk.yaml", "--gate", "--resume", "--json", "gate.json")
    assert ended.code == 1, ended.out
    assert "AttributeError" not in ended.out


def test_a_case_that_passes_but_scores_far_below_its_usual_range_is_a_suspect(
    project: Path, proctor: Command, proctor_process: Command
) -> None:
    (project / "marks.py").write_text("MARK = 1.0\n\n\ndef mark(evaluable):\n    return float(evaluable.output)\n")
    (project / "app.py").write_text("def agent(question):\n    return '0.95'\n", encoding="utf-8")
    suite = "agent: app.py:agent\ncases:\n  - {id: one, input: hi, evaluators: [marks.py:mark]}\n"
    (project / "desk.yaml").write_text(suite, encoding="utf-8")
    assert proctor_process("test", "desk.yaml", "--repeat", "10", "-q").code == 0
    proctor("baseline", "accept")
    (project / "app.py").write_text("def agent(question):\n    return '0.6'\n", encoding="utf-8")
    ended = proctor_process("test", "desk.yaml", "--gate")
    assert ended.code == 1, ended.out
    assert "it scored 0.60, 0.95 in the baseline" in ended.out


def test_a_gate_whose_budget_is_spent_says_what_it_knows(shop: Path, proctor_process: Command) -> None:
    costly = AGENT.format(refund=8, better=False).replace(
        "def agent(question):",
        "from proctor import Usage\n\n\ndef agent(question):\n"
        "    if question == 'refund':\n"
        "        return Reply('No.', usage=Usage(10, 10, 1.0))\n",
    )
    (shop / "app.py").write_text(costly, encoding="utf-8")
    ended = proctor_process("test", "desk.yaml", "--gate", "--budget", "1.5")
    assert ended.code == 3, ended.out
    assert "stopped: the budget is spent" in ended.out
    assert "would prove it" in ended.out


def test_a_drop_that_is_spread_thin_over_many_cases_is_seen(project: Path, proctor_process: Command) -> None:
    agent = """
import threading
import zlib
from pathlib import Path

WRONG = {wrong}
COUNTING = threading.Lock()


def agent(question):
    path = Path("asked-" + question)
    with COUNTING:
        asked = len(path.read_text()) if path.exists() else 0
        path.write_text("x" * (asked + 1))
    return "no" if (zlib.crc32(question.encode()) + 7 * asked) % 10 < WRONG else question
"""
    cases = "".join(f"  - {{id: c{n}, input: c{n}, expected: c{n}}}\n" for n in range(60))
    (project / "desk.yaml").write_text(f"agent: app.py:agent\ncases:\n{cases}", encoding="utf-8")
    (project / "app.py").write_text(agent.format(wrong=2), encoding="utf-8")
    proctor_process("test", "desk.yaml", "--repeat", "10", "-q")
    proctor_process("baseline", "accept")
    assert proctor_process("test", "desk.yaml", "--gate", "-q").code == 0
    (project / "app.py").write_text(agent.format(wrong=5), encoding="utf-8")
    ended = proctor_process("test", "desk.yaml", "--gate", "--json", "gate.json", "-q")
    assert ended.code == 1, ended.out
    assert "the suite as a whole fails more often than its baseline" in ended.out
    assert report(project)["drift"]["proven"]


def test_an_evaluator_changes_with_what_it_imports_and_not_with_the_agent_beside_it(
    project: Path, proctor: Command, proctor_process: Command
) -> None:
    (project / "marks.py").write_text("def mark(evaluable):\n    import limits\n\n    return limits.HIGH\n")
    (project / "limits.py").write_text("HIGH = 1\n", encoding="utf-8")
    (project / "app.py").write_text("def agent(question):\n    return question\n", encoding="utf-8")
    suite = "agent: app.py:agent\ncases:\n  - {id: one, input: hi, evaluators: [marks.py:mark]}\n"
    (project / "desk.yaml").write_text(suite, encoding="utf-8")
    proctor_process("test", "desk.yaml", "--repeat", "3", "-q")
    proctor("baseline", "accept")
    (project / "app.py").write_text("def agent(question):\n    return question + '!'\n", encoding="utf-8")
    assert proctor_process("test", "desk.yaml", "--gate", "-q").code == 0
    (project / "limits.py").write_text("HIGH = 0.9\n", encoding="utf-8")
    ended = proctor_process("test", "desk.yaml", "--gate")
    assert ended.code == 3
    assert "its evaluators, thresholds or judge changed since the baseline was recorded" in ended.out
