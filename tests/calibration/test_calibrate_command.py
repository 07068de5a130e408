"""`proctor calibrate`: what is said about a judge, and what becomes of rows that nobody can use."""

from __future__ import annotations

import html
import json
import shlex
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from judge_server import JudgeServer, ModelRequest, judge_server, says, status
from reporting_samples import FAILED, PASSED, score, trial
from stored_runs import FIRST, store_run

from proctor.calibration.command import progress_text
from proctor.calibration.measurement import CalibrationProgress
from proctor.results.human_labels import HumanLabel, HumanLabels
from proctor.results.store.store import DATABASE_FILE

Command = Callable[..., Any]


def rows(count: int = 20, **changes: Any) -> list[dict[str, Any]]:
    """Half of the answers keep to their context."""
    return [
        {
            "id": f"row-{number}",
            "input": "How long does the trip take?",
            "context": f"The trip of train {number} takes {number + 30} minutes.",
            "answer": f"The trip of train {number} takes {number % 2 * 50 + number + 30} minutes.",
            "label": "unsupported" if number % 2 else "supported",
            **changes,
        }
        for number in range(count)
    ]


def references(count: int = 12) -> list[dict[str, Any]]:
    return [
        {
            "id": number,
            "input": f"Who is number {number}?",
            "reference": "Ada",
            "answer": "Ada" if number % 2 else "Bob",
            "label": number % 2,
        }
        for number in range(count)
    ]


def choice(word: str) -> str:
    return json.dumps({"reason": "so", "choice": word})


def judge_at(server: JudgeServer) -> str:
    return json.dumps({"model": "openai:small", "base_url": server.url})


def write(path: Path, data: list[Any]) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in data), encoding="utf-8")
    return path


@pytest.fixture
def suite(project: Path) -> Callable[..., Path]:
    """Write the text of a suite and return its path."""

    def write_suite(name: str = "suite.yaml", *, text: str) -> Path:
        path = project / name
        path.write_text(text, encoding="utf-8")
        return path

    return write_suite


def test_the_rule_based_judge_is_compared_with_people(proctor: Command, project: Path) -> None:
    ended = proctor("calibrate", "rules", write(project / "rows.jsonl", rows()))
    assert ended.code == 0
    assert (
        "rules as judge of Faithfulness (threshold 0.8): 20 rows of rows.jsonl, 50.0% labelled good by people"
        in ended.out
    )
    for title in ("accuracy", "Cohen's kappa", "true-positive rate", "true-negative rate", "AUC", "word overlap"):
        assert title in ended.out
    assert "never: this judge always gives the same answer" in ended.out
    assert "suggested threshold" in ended.out


def test_json_has_every_number_with_its_interval(proctor: Command, project: Path) -> None:
    ended = proctor("calibrate", "rules", write(project / "rows.jsonl", rows()), "--json")
    found = json.loads(ended.out)
    assert found["data"]["rows"] == 20
    assert found["agreement"]["base_rate"] == 0.5
    assert found["agreement"]["accuracy"]["low"] < found["agreement"]["accuracy"]["mean"] <= 1
    assert found["auc"]["mean"] > 0.9
    assert found["suggestion"]["chosen_on"]["count"] == found["suggestion"]["checked_on"]["count"] == 10
    assert found["baseline"]["auc"]["count"] == 20
    assert found["prompt_versions"] == {"statements": 2, "claims": 3}


def test_the_report_is_what_its_schema_says(proctor: Command, project: Path) -> None:
    text = resources.files("proctor").joinpath("schemas/calibration.schema.json").read_text(encoding="utf-8")
    found = json.loads(proctor("calibrate", "rules", write(project / "rows.jsonl", rows(8)), "--json").out)
    assert found["schema"] == json.loads(text)["$id"]
    jsonschema_rs.validate(json.loads(text), found)


def test_an_evaluator_that_ends_the_process_is_no_success(proctor_process: Command, project: Path) -> None:
    check = "import os\n\n\ndef ends(evaluable):\n    os._exit(0)\n"
    (project / "ending.py").write_text(check, encoding="utf-8")
    ended = proctor_process("calibrate", "rules", write(project / "rows.jsonl", references(4)), "-e", "ending.py:ends")
    assert ended.code != 0
    assert "agreement" not in ended.out


def test_rows_with_a_reference_are_judged_by_whether_answers_agree(proctor: Command, project: Path) -> None:
    ended = proctor("calibrate", "rules", write(project / "rows.jsonl", references()))
    assert "as judge of Factuality" in ended.out
    named = proctor("calibrate", "rules", project / "rows.jsonl", "-e", 'AnswerCorrectness={"threshold": 0.7}')
    assert "as judge of AnswerCorrectness (threshold 0.7)" in named.out


def test_what_people_said_of_a_stored_run_can_be_calibrated_with(proctor: Command, project: Path) -> None:
    details = {"judge": {"model": "openai:gpt-5-mini", "calls": []}}
    good, bad = (score(outcome, None, "Factuality", details=details) for outcome in (PASSED, FAILED))
    store_run(
        project / ".proctor", FIRST, [trial("one", PASSED, "Five days.", good), trial("two", FAILED, "Never.", bad)]
    )
    with HumanLabels(project / ".proctor" / DATABASE_FILE) as labels:
        for case, passed in (("one", True), ("two", False)):
            labels.add(FIRST, HumanLabel(("support", case, 1, None, "Factuality"), passed, "", "Ada"))
    labelled = proctor("grade", FIRST, "--labels").out
    (project / "rows.jsonl").write_text(labelled, encoding="utf-8")
    found = json.loads(proctor("calibrate", "rules", "rows.jsonl", "--retest", "0", "--json").out)
    assert found["data"]["rows"] + len(found["unjudged"]) == 2


@pytest.mark.parametrize(
    ("good", "bad"),
    [("yes", "no"), (True, False), (1, 0), ("1", "0"), ("PASS", " Fail "), (1.0, 0.0), ("correct", "incorrect")],
)
def test_the_usual_labels_are_understood(proctor: Command, project: Path, good: Any, bad: Any) -> None:
    data = [{**row, "label": good if row["label"] == "supported" else bad} for row in rows(6)]
    found = json.loads(proctor("calibrate", "rules", write(project / "rows.jsonl", data), "--json").out)
    assert found["agreement"]["base_rate"] == 0.5


def test_other_labels_need_to_be_explained(proctor: Command, project: Path) -> None:
    data = [{**row, "label": "grün" if row["label"] == "supported" else "rot"} for row in rows(6)]
    path = write(project / "rows.jsonl", data)
    ended = proctor("calibrate", "rules", path)
    assert ended.code == 2
    assert ended.err.count("with --positive") == 6
    assert json.loads(proctor("calibrate", "rules", path, "--positive", "Grün", "--json").out)["agreement"]
    assert proctor("calibrate", "rules", path, "--positive", "blue").code == 2


def test_all_bad_rows_are_reported_at_once_with_their_lines(proctor: Command, project: Path) -> None:
    data = ["{", "[]", *rows(2), {"id": "row-0", "answer": "x", "label": "yes"}, {"label": "yes"}]
    data += [
        {"answer": "x", "context": 5, "label": "no"},
        {"answer": "x", "label": "perhaps"},
        "[" * 100_000,
    ]
    ended = proctor("calibrate", "rules", write(project / "rows.jsonl", data))
    assert ended.code == 2
    lines = [line.split(":")[2] for line in ended.err.splitlines() if line.startswith("error: ")]
    assert lines == ["1", "2", "5", "6", "7", "8", "9"]
    assert "the same id as line 3" in ended.err


def test_rows_without_a_label_are_left_out_and_counted(proctor: Command, project: Path) -> None:
    bare = {"context": "x", "answer": "x"}
    data = [*rows(8), {"id": "a", **bare}, {"id": "b", **bare, "label": None}]
    ended = proctor("calibrate", "rules", write(project / "rows.jsonl", data))
    assert ": 8 rows" in ended.out
    assert "2 rows without a label (not counted)" in ended.out


@pytest.mark.parametrize("content", ["", "\n\n", '{"answer": "x"}'])
def test_a_file_without_labelled_rows_is_refused(proctor: Command, project: Path, content: str) -> None:
    (project / "rows.jsonl").write_text(content, encoding="utf-8")
    ended = proctor("calibrate", "rules", "rows.jsonl")
    assert (ended.code, "has no labelled rows" in ended.err) == (2, True)


def test_with_one_label_only_what_cannot_be_told_is_not_told(proctor: Command, project: Path) -> None:
    data = [{**row, "label": "supported"} for row in rows(6)]
    ended = proctor("calibrate", "rules", write(project / "rows.jsonl", data))
    assert ended.code == 0
    assert ended.out.count("undefined: people gave all these rows the same label") >= 2
    assert "no suggested threshold" in ended.out


def test_one_row_is_enough(proctor: Command, project: Path) -> None:
    assert proctor("calibrate", "rules", write(project / "rows.jsonl", rows(1))).code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nobody", "rows.jsonl"), "provider:model"),
        (("local:none.gguf", "rows.jsonl"), "ollama:MODEL"),
        (("rules", "none.jsonl"), "does not exist"),
        (("rules", "."), "cannot be read"),
        (("rules", "bytes.jsonl"), "is not UTF-8"),
        (("rules", "mixed.jsonl"), "with --evaluator"),
        (("rules", "rows.jsonl", "-e", "ExactMatch"), "does not use a judge"),
        (("rules", "rows.jsonl", "-e", "Nonsense"), "no evaluator is called"),
        (("rules", "rows.jsonl", "--limit", "0"), "--limit"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is_asked(
    proctor: Command, project: Path, arguments: tuple[str, ...], said: str
) -> None:
    write(project / "rows.jsonl", rows(2))
    write(project / "mixed.jsonl", [*rows(1), *references(2)[1:]])
    (project / "bytes.jsonl").write_bytes(b"\xff\xfe\x00")
    ended = proctor("calibrate", *arguments)
    assert ended.code == 2
    assert said in ended.err


def test_rows_that_cannot_be_judged_are_errors_and_never_wrong(proctor: Command, project: Path) -> None:
    def answer(asked: ModelRequest) -> Any:
        right = choice("C") if ">\nAda\n</answer" in asked.prompt else choice("D")
        return status(400, "no") if "number 3" in asked.prompt else right

    data = references(8)
    with judge_server(answer) as server:
        ended = proctor("calibrate", judge_at(server), write(project / "rows.jsonl", data), "--json", "--retest", "0")
    found = json.loads(ended.out)
    assert ended.code == 0
    assert (found["data"]["rows"], found["agreement"]["accuracy"]["mean"]) == (7, 1.0)
    assert [(row["id"], row["outcome"]) for row in found["unjudged"]] == [("3", "error")]


def test_a_judge_that_judges_nothing_gives_no_verdict(proctor: Command, project: Path) -> None:
    with judge_server(status(400, "no")) as server:
        path = write(project / "rows.jsonl", references(4))
        ended = proctor("calibrate", judge_at(server), path)
        as_json = proctor("calibrate", judge_at(server), path, "--json")
    assert ended.code == as_json.code == 4
    assert "judged none of the rows" in ended.out
    assert "4 rows not judged because of an error" in ended.out
    assert len(json.loads(as_json.out)["unjudged"]) == 4


def test_a_model_is_asked_some_rows_twice_and_its_flips_are_counted(proctor: Command, project: Path) -> None:
    def answer(asked: ModelRequest) -> Any:
        return choice("C") if asked.body.get("temperature") == 0 else choice("D")

    with judge_server(answer) as server:
        path = write(project / "rows.jsonl", references(6))
        ended = proctor("calibrate", judge_at(server), path, "--retest", "4")
        assert len(server.requests) == 10
        proctor("calibrate", judge_at(server), path, "--retest", "4")
        assert len(server.requests) == 10, "answers that are kept are not asked for again"
    assert "1.000 [0.510, 1.000]  4 of 4 rows judged twice; 95% of scores moved by 1.00 or less" in ended.out


def test_a_judge_with_options_is_measured_as_a_suite_has_it(proctor: Command, project: Path, suite: Any) -> None:
    with judge_server(choice("C")) as server:
        judge = {"model": "openai:small", "base_url": server.url, "max_tokens": 77}
        path = write(project / "rows.jsonl", references())
        found = json.loads(proctor("calibrate", json.dumps(judge), path, "--json", "--retest", "0").out)
        assert (found["judge"], found["data"]["rows"]) == ("openai:small", 12)
        assert 77 in server.requests[0].body.values()
        cases = [{"id": "one", "input": "Ada", "expected": "Ada"}]
        declared = {"agent": "agents.py:echo", "judge": judge, "evaluators": ["Factuality"], "cases": cases}
        suite("desk.yaml", text=json.dumps(declared))
        assert "with people on 12 rows" in proctor("test", "desk.yaml").out


@pytest.mark.parametrize("judge", ["{", "{}", '{"model": 3}', "{" * 5000])
def test_options_that_name_no_judge_are_refused(proctor: Command, project: Path, judge: str) -> None:
    ended = proctor("calibrate", judge, write(project / "rows.jsonl", rows()))
    assert ended.code == 2
    assert "judge" in ended.err


def test_a_limit_takes_the_same_rows_each_time(proctor: Command, project: Path) -> None:
    path = write(project / "rows.jsonl", rows(20))
    first, second = (json.loads(proctor("calibrate", "rules", path, "--limit", 7, "--json").out) for _ in range(2))
    assert first == second
    assert first["data"]["rows"] == 7


SUITE = """
name: trains
agent: agents.py:echo
evaluators: [Faithfulness]
cases:
  - id: one
    input: The train goes to Oslo every morning.
    retrieval_context: [The train goes to Oslo every morning.]
  - id: two
    input: The train does not go to Oslo every morning.
    retrieval_context: [The train goes to Oslo every morning.]
"""


def test_later_runs_show_the_corrected_pass_rate_in_every_report(proctor: Command, project: Path, suite: Any) -> None:
    suite("trains.yaml", text=SUITE)
    before = proctor("test", "trains.yaml", "--json", "before.json")
    assert "corrected" not in before.out
    assert json.loads((project / "before.json").read_text())["run"]["corrections"] == []
    proctor("calibrate", "rules", write(project / "rows.jsonl", rows(40)))
    ended = proctor("test", "trains.yaml", "--md", "r.md", "--html", "r.html", "--json", "r.json")
    said = "corrected by the agreement of rules with people on 40 rows: 50.0% ["
    assert said in ended.out
    for report in ("r.md", "r.html"):
        assert "Corrected pass rate" in (project / report).read_text(encoding="utf-8")
    (found,) = json.loads((project / "r.json").read_text())["run"]["corrections"]
    assert (found["evaluator"], found["judge"], found["rows"]) == ("Faithfulness", "rules", 40)
    assert found["observed"]["mean"] == 0.5
    assert said in proctor("show", "last").out


def test_other_arguments_are_not_corrected_and_the_calibration_is_reported_as_stale(
    proctor: Command, project: Path, suite: Any
) -> None:
    proctor("calibrate", "rules", write(project / "rows.jsonl", rows(40)))
    suite("trains.yaml", text=SUITE.replace("[Faithfulness]", "[{Faithfulness: {mode: contradicted}}, Hallucination]"))
    ended = proctor("test", "trains.yaml", "--json", "r.json", "--md", "r.md", "--html", "r.html")
    said = " ".join(ended.out.split())
    assert "corrected by the agreement" not in said
    assert (
        "is not used, so its pass rate is not corrected: the criteria or other arguments of Faithfulness changed"
        in said
    )
    assert f"""proctor calibrate rules {project / "rows.jsonl"} -e 'Faithfulness={{"mode":"contradicted"}}'""" in said
    for report in ("r.md", "r.html"):
        assert "Stale calibration" in (project / report).read_text(encoding="utf-8")
    run = json.loads((project / "r.json").read_text())["run"]
    assert run["corrections"] == []
    assert [item["evaluator"] for item in run["stale_calibrations"]] == ["Faithfulness"]


def test_the_command_that_calibrates_a_changed_rubric_again_works(proctor: Command, project: Path, suite: Any) -> None:
    def reply(asked: ModelRequest) -> str:
        return json.dumps({"reason": "so", "verdict": "yes" if "Ada" in asked.prompt.split("<answer")[1] else "no"})

    def declare(rubric: str, url: str) -> None:
        judge = {"model": "openai:small", "base_url": url}
        cases = [{"id": name, "input": name} for name in ("Ada", "Bob")]
        evaluators = [{"LLMJudge": {"rubric": rubric, "name": "Names"}}]
        written = {"agent": "agents.py:echo", "judge": judge, "evaluators": evaluators, "cases": cases}
        suite("desk.yaml", text=json.dumps(written))

    with judge_server(reply) as server:
        option = 'LLMJudge={"rubric": "It names Ada.", "name": "Names"}'
        proctor("calibrate", judge_at(server), write(project / "rows.jsonl", references()), "-e", option, "--retest", 0)
        declare("It names Ada.", server.url)
        assert "corrected by the agreement" in proctor("test", "desk.yaml").out
        declare("It names Ada, the Countess's.", server.url)
        proctor("test", "desk.yaml", "--json", "r.json")
        (stale,) = json.loads((project / "r.json").read_text())["run"]["stale_calibrations"]
        again = proctor(*shlex.split(stale["command"])[1:], "--retest", 0)
        assert again.code == 0, again.err
        assert "corrected by the agreement" in proctor("show", "last").out


def test_a_calibration_is_not_used_after_its_rows_changed_until_it_is_made_again(
    proctor: Command, project: Path, suite: Any
) -> None:
    suite("trains.yaml", text=SUITE)
    proctor("calibrate", "rules", write(project / "rows.jsonl", rows(40)))
    assert "corrected by the agreement" in proctor("test", "trains.yaml").out
    write(project / "rows.jsonl", rows(38))
    stale = " ".join(proctor("show", "last").out.split())
    assert "the rows in rows.jsonl changed" in stale
    assert "corrected by the agreement" not in stale
    proctor("calibrate", "rules", project / "rows.jsonl")
    again = " ".join(proctor("show", "last").out.split())
    assert "with people on 38 rows" in again
    assert "is not used" not in again


def test_a_calibration_of_another_version_behind_the_same_name_is_stale(
    proctor: Command, project: Path, suite: Any
) -> None:
    served = ["small-2026-01"]

    def reply(asked: ModelRequest) -> Any:
        good = "Ada" in asked.prompt.split("<answer")[1]
        return says(choice("C" if good else "D"), model=served[0])

    cases = [{"id": name, "input": name, "expected": "Ada"} for name in ("Ada", "Bob")]
    declared = {"agent": "agents.py:echo", "evaluators": ["Factuality"], "cases": cases}
    with judge_server(reply) as server:
        suite("desk.yaml", text=json.dumps({**declared, "judge": json.loads(judge_at(server))}))
        proctor("calibrate", judge_at(server), write(project / "rows.jsonl", references()), "--retest", 0)
        same = proctor("test", "desk.yaml").out
        served[0] = "small-2026-09"
        suite(
            "desk.yaml", text=(project / "desk.yaml").read_text().replace('"Bob"', '"Eve"').replace('"Ada"}', '"Ada "}')
        )
        other = " ".join(proctor("test", "desk.yaml").out.split())
    assert "corrected by the agreement" in same
    assert "the model behind the name is now small-2026-09 (it was small-2026-01)" in other
    assert "corrected by the agreement" not in other
    assert f'"base_url":"{server.url}"' in other.replace(" ", "")


def test_coverage_stands_beside_accuracy_and_the_risk_grows_with_coverage(proctor: Command, project: Path) -> None:
    paraphrase = "Somebody who paid gets everything back 5 days later."
    unclear = {"context": "Refunds take 5 days.", "answer": paraphrase, "label": "supported"}
    wrong = {"id": "wrong", "context": "The shop opens at 9 am.", "answer": "The shop opens at 9 am.", "label": "no"}
    path = write(project / "rows.jsonl", [*rows(18), {"id": "unclear", **unclear}, wrong])
    ended = proctor("calibrate", "rules", path)
    assert "  coverage            0.950 [0.764, 0.991]  the judge abstained from 1 row\n" in ended.out
    assert "  accuracy            0.947 [0.754, 0.991]  0.526 for always giving the same answer\n" in ended.out
    table = ended.out.partition("risk by coverage, the surest scores first:\n")[2].splitlines()[:10]
    assert table[0] == "    10.0% of rows    0.0% wrong"
    assert table[-2:] == ["    90.0% of rows    5.6% wrong", "    95.0% of rows    5.3% wrong"]
    data = json.loads(proctor("calibrate", "rules", path, "--json").out)
    assert data["coverage"]["mean"] == pytest.approx(0.95)
    assert data["risk_coverage"][-1] == {"coverage": 0.95, "rows": 19, "risk": pytest.approx(1 / 19)}
    assert [at["rows"] for at in data["risk_coverage"]] == sorted({*range(2, 19, 2), 19})


def test_progress_tells_rows_calls_and_the_time_that_is_left() -> None:
    assert (
        progress_text(CalibrationProgress(15, 60, 27, 3), 30)
        == "15 of 60 rows, 27 calls (3 from cache), about 1m 30s left"
    )
    assert progress_text(CalibrationProgress(60, 60, 27, 3), 30) == "60 of 60 rows, 27 calls (3 from cache)"
    assert progress_text(CalibrationProgress(5, 20, 3, 0, is_retest=True), 0.1) == "5 of 20 rows judged again, 3 calls"
    assert progress_text(CalibrationProgress(1, 1, 0, 0), 0.1) == "1 of 1 row"


def test_without_a_terminal_progress_is_told_now_and_then(
    proctor: Command, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.calibration.command.SECONDS_BETWEEN_LINES", 0.0)
    ended = proctor("calibrate", "rules", write(project / "rows.jsonl", rows(4)))
    assert ended.err.splitlines() == ["1 of 4 rows", "2 of 4 rows", "3 of 4 rows"]


def wavering(asked: ModelRequest) -> Any:
    """A judge whose score of one answer is 0.6, and 0.6 or 0.4 when it is asked again."""
    if asked.body.get("temperature") == 0:
        return choice("B") if "Ada" in asked.prompt.split("<answer")[1] else choice("D")
    return choice("B") if "number 1?" in asked.prompt else choice("A")


def test_every_report_carries_what_is_known_of_its_judge(proctor: Command, project: Path, suite: Any) -> None:
    cases = [{"id": name, "input": name, "expected": "Ada"} for name in ("Ada", "Bob")]
    declared = {"agent": "agents.py:echo", "evaluators": ["Factuality"], "cases": cases}
    with judge_server(wavering) as server:
        suite("desk.yaml", text=json.dumps({**declared, "judge": json.loads(judge_at(server))}))
        before = proctor("test", "desk.yaml", "--json", "before.json").out
        assert before.count("not calibrated") == 1
        proctor("calibrate", judge_at(server), write(project / "rows.jsonl", references()), "--retest", 6)
        ended = proctor("test", "desk.yaml", "--md", "r.md", "--html", "r.html", "--json", "r.json")
    today = time.strftime("%Y-%m-%d")
    measured = [
        f"calibrated {today}: true-positive rate 1.000 [0.610, 1.000], true-negative rate 1.000 [0.610, 1.000], ",
        "of 6 scores flipped when judged again",
        "1 score of Factuality within 0.40 of the threshold 0.5, the noise of",
    ]
    pages = [ended.out, *((project / name).read_text(encoding="utf-8") for name in ("r.md", "r.html"))]
    for page in pages:
        plain = html.unescape(page).replace("\\", "")
        assert [words for words in measured if words not in plain] == []
        assert "not calibrated" not in plain
    data = json.loads((project / "r.json").read_text(encoding="utf-8"))["run"]
    (found,) = data["corrections"]
    assert data["uncalibrated"] == {}
    assert json.loads((project / "before.json").read_text(encoding="utf-8"))["run"]["uncalibrated"] == {
        found["judge"]: []
    }
    assert (found["retested"], found["noise"]) == (6, pytest.approx(0.4))
    assert found["true_positive_rate"]["mean"] == found["true_negative_rate"]["mean"] == 1.0
    assert [(near["case"], near["value"]) for near in found["near"]] == [("Ada", pytest.approx(0.6))]


def test_a_judge_that_was_measured_for_one_evaluator_says_for_which_it_was_not(
    proctor: Command, project: Path, suite: Any
) -> None:
    proctor("calibrate", "rules", write(project / "rows.jsonl", rows(40)))
    suite("trains.yaml", text=SUITE.replace("[Faithfulness]", "[Faithfulness, Hallucination]"))
    assert "; not calibrated for Hallucination\n" in proctor("test", "trains.yaml").out
