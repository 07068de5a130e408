"""Grades and labels that are given in the browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path

import httpx2
import pytest
from reporting_samples import FAILED, PASSED, PENDING, score, trial
from served_viewer import TOKEN, serve_viewer
from stored_runs import FIRST, SECOND, store_run, two_runs

from proctor.agents.reply import Reply
from proctor.cases.suite import Case, EvaluatorSpec, Expected, Turn
from proctor.cli import main
from proctor.evaluators.registry import find_declaration
from proctor.results.score import Outcome
from proctor.results.store.store import Store

JUDGED = {"judge": {"model": "openai:gpt-5-mini", "calls": []}}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    two_runs(tmp_path / ".proctor")
    return tmp_path / ".proctor"


@pytest.fixture
def client(store: Path) -> Iterator[httpx2.Client]:
    with serve_viewer(store) as client:
        yield client


def grade(client: httpx2.Client, run: str, *, what: str = "waiting", **changes: str) -> httpx2.Response:
    """Fill in the form that the page shows and send it as a browser does."""
    page = client.get(f"/runs/{run}/grade?what={what}").text
    fields = dict(re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page))
    form = {name: unescape(value) for name, value in fields.items()}
    form |= {"who": "Ada", "comment": "kind enough", "verdict": "pass", **changes}
    origin = str(client.base_url).rstrip("/")
    return client.post(f"/runs/{run}/grade", data=form, headers={"origin": origin})


def test_a_grade_settles_what_waited_with_who_and_when(client: httpx2.Client, store: Path) -> None:
    answer = grade(client, SECOND)
    assert answer.status_code == 303
    kept = Store(store)
    [waited] = [item for item in kept.trials(kept.find_run(SECOND).no) if item.case.id == "tone"]
    kept.close()
    assert waited.outcome is Outcome.PASSED
    [given] = waited.scores
    assert given.reasoning == "kind enough"
    assert given.details["graded_by"] == "Ada"
    assert given.details["graded_at"].startswith("20")
    assert "Nothing left to grade here" in client.get(f"/runs/{SECOND}/grade").text


def test_the_page_shows_the_criteria_and_the_passages_to_grade_against(tmp_path: Path) -> None:
    rules = {"judge": {"model": "rules", "calls": []}}
    specs = (
        EvaluatorSpec("Faithfulness"),
        EvaluatorSpec(
            "GEval", {"criteria": "Names the <b>fee</b>.", "evaluation_steps": ["Find the fee.", "Compare."]}
        ),
    )
    turn = Turn("Fee?", Expected(output="Ten euros.", context=("The fee is <i>10</i> EUR.",)))
    case = Case(id="fee", turns=(turn,), evaluators=specs)
    reply = Reply("Ten.", retrieval_context=("Retrieved: fees are listed online.", "x" * 50_000))
    scores = [score(PENDING, None, item.name, reasoning="no rule proves it", details=rules) for item in specs]
    store_run(tmp_path, FIRST, [trial(case, PENDING, None, *scores, replies=(reply,))])
    with serve_viewer(tmp_path) as client:
        faithful = client.get(f"/runs/{FIRST}/grade").text
        rubric = client.get(f"/runs/{FIRST}/grade?skip=1").text
    assert find_declaration("Faithfulness").summary in unescape(faithful)
    assert "The fee is &lt;i&gt;10&lt;/i&gt; EUR." in faithful
    assert "Retrieved: fees are listed online." in faithful
    assert "x" * 10_001 not in faithful
    assert "Ten euros." in faithful
    assert "Why it is pending" in faithful
    assert "no rule proves it" in faithful
    assert "Names the &lt;b&gt;fee&lt;/b&gt;." in rubric
    assert "Find the fee." in rubric


def test_the_rule_based_judge_is_not_called_a_model(tmp_path: Path) -> None:
    rules = {"judge": {"model": "rules", "calls": [{"model": "rules", "kind": "claims"}]}}
    store_run(tmp_path, FIRST, [trial("a", FAILED, "x", score(FAILED, 0.0, "Faithfulness", details=rules))])
    with serve_viewer(tmp_path) as client:
        pages = [
            client.get(f"/runs/{FIRST}{place}").text for place in ("/case?suite=support&case=a", "/grade?what=judged")
        ]
    assert "by the rule-based judge" in pages[0]
    assert not any(re.search(r"by (a model|rules\b)", page) for page in pages)


def test_the_page_of_the_run_follows_a_grade(client: httpx2.Client) -> None:
    assert "Grade 1 case" in client.get(f"/runs/{SECOND}").text
    grade(client, SECOND, verdict="fail")
    text = client.get(f"/runs/{SECOND}").text
    assert "Grade 1 case" not in text
    assert "failed 3" in text


def test_two_people_see_how_far_they_agree(client: httpx2.Client) -> None:
    grade(client, SECOND)
    client.cookies.delete("proctor_grader")
    client.cookies.set("proctor_grader", "Grace")
    assert grade(client, SECOND, what="second", who="Grace", verdict="fail").status_code == 303
    text = client.get(f"/runs/{SECOND}/grade?what=second").text
    assert "2 labels by Ada, Grace" in text
    assert "agree on 0% of 1" in text
    assert "Nothing left to grade here" in text


def test_labels_of_judged_scores_are_written_as_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ".proctor"
    judged = [score(PASSED, 0.9, "Factuality", details=JUDGED), score(FAILED, 0.1, "Factuality", details=JUDGED)]
    store_run(folder, FIRST, [trial("one", PASSED, "Five days.", judged[0]), trial("two", FAILED, "Never.", judged[1])])
    with serve_viewer(folder) as client:
        grade(client, FIRST, what="judged", verdict="pass")
        grade(client, FIRST, what="judged", verdict="fail", comment="")
        text = client.get(f"/runs/{FIRST}/grade").text
        assert "openai:gpt-5-mini and people" in text
        assert "agree on 100% of 2" in text
        rows = client.get(f"/runs/{FIRST}/labels.jsonl").text
    told = [json.loads(line) for line in rows.splitlines()]
    assert [(row["answer"], row["label"], row["who"]) for row in told] == [
        ("Five days.", "pass", "Ada"),
        ("Never.", "fail", "Ada"),
    ]
    monkeypatch.chdir(tmp_path)
    run = _command(monkeypatch, capsys)
    assert run("grade", FIRST, "--labels").splitlines() == rows.splitlines()


def test_a_label_does_not_change_the_score_or_the_verdict(tmp_path: Path) -> None:
    folder = tmp_path / ".proctor"
    store_run(folder, FIRST, [trial("one", PASSED, "Five days.", score(PASSED, 0.9, "Factuality", details=JUDGED))])
    with serve_viewer(folder) as client:
        grade(client, FIRST, what="judged", verdict="fail")
        assert "1 of 1 cases passed" in client.get(f"/runs/{FIRST}").text


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"token": "wrong"}, 403),
        ({"token": ""}, 403),
        ({"who": " "}, 409),
        ({"verdict": "maybe"}, 409),
        ({"no": "9999"}, 409),
        ({"no": "1"}, 409),
        ({"at": "7"}, 409),
        ({"at": "x"}, 409),
        ({"place": "[]"}, 409),
        ({"place": '["support", "other", 1, null, "Tone"]'}, 409),
        ({"comment": "x" * 2_000_000}, 413),
    ],
)
def test_a_form_that_is_not_the_viewers_own_changes_nothing(
    client: httpx2.Client, changes: dict[str, str], status: int
) -> None:
    assert grade(client, SECOND, **changes).status_code == status
    assert "1 of 1" in client.get(f"/runs/{SECOND}/grade").text


def test_the_form_holds_the_token_and_nothing_else_does(client: httpx2.Client) -> None:
    assert TOKEN in client.get(f"/runs/{SECOND}/grade").text
    assert TOKEN not in client.get(f"/runs/{SECOND}").text


def _command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def run(*arguments: str) -> str:
        monkeypatch.setattr("sys.argv", ["proctor", *arguments])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code in (0, None), said.err
        return said.out

    return run
