"""What a run answers: `passed` and `failed` on every level, cases by id, rates that know what they rest on."""

from __future__ import annotations

import io
import math
import pickle
from pathlib import Path

import pytest
from builders import score, trial
from reporting_samples import make_run

import proctor
from proctor import Case, Expected, Keywords, Outcome, Run, Suite, Turn
from proctor.base.errors import Inconclusive
from proctor.results.statistics import Rate

FAILED, ERROR, PENDING, SKIPPED = Outcome.FAILED, Outcome.ERROR, Outcome.PENDING, Outcome.SKIPPED


def shop(**more: object) -> Suite:
    cases = (
        Case(
            id="shipped", turns=(Turn(input="Where is A-17?", expected=Expected(contains=Keywords(any=("shipped",)))),)
        ),
        Case(id="lost", turns=(Turn(input="A-18 never came.", expected=Expected(contains=Keywords(any=("sorry",)))),)),
    )
    return Suite(name="shop", cases=cases, agent=lambda question: "It is shipped.", **more)  # type: ignore[arg-type]


@pytest.fixture(params=["in memory", "stored", "loaded"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """The same run as `proctor.run` returns it, with a store, and read again from the store."""
    if request.param == "in memory":
        return proctor.run(shop())
    stored = proctor.run(shop(), store=tmp_path / ".proctor")
    return stored if request.param == "stored" else Run.load("last", store=tmp_path / ".proctor")


def test_a_run_says_what_passed_and_what_failed(run: Run) -> None:
    assert not run
    assert (run.passed, run.outcome, run.reason) == (False, FAILED, "1 of 2 cases passed")
    assert [case.id for case in run.failed] == ["lost"]
    assert (run.errors, run.pending, run.skipped) == ([], [], [])
    assert [(case.id, case.passed) for case in run] == [("shipped", True), ("lost", False)]
    assert str(run.verdict) == "FAILED  1 of 2 cases passed"
    assert repr(run) == "<Run shop: failed, 1 of 2 cases passed; not passed: lost>"


def test_cases_are_found_by_position_by_id_and_by_suite(run: Run) -> None:
    assert len(run) == 2
    assert run[0].id == run["shipped"].id == run["shop", "shipped"].id == "shipped"
    assert run[-1].id == "lost"
    assert "lost" in run
    assert "lsot" not in run
    with pytest.raises(KeyError) as error:
        run["lsot"]
    assert str(error.value) == "no case 'lsot' in this run; did you mean 'lost'?"
    with pytest.raises(IndexError):
        run[2]


def test_a_case_has_its_trials_and_the_answer_that_reports_show(run: Run) -> None:
    case = run["lost"]
    assert (case.suite, case.arm, case.output) == ("shop", "", "It is shipped.")
    assert case.case.turns[0].input == "A-18 never came."
    assert case.scores["Contains"].value == case.scores[0].value == 0.0
    assert case.scores[0].passed is False
    assert len(case.trials) == 1
    assert case.trial is case.trials[0]
    assert "sorry" in case.reason
    assert case.reason == case.trial.reason
    assert [item.evaluator for item in case.trial.failed] == ["Contains"]
    assert run["shipped"].reason == ""
    with pytest.raises(KeyError, match="no score of 'Contians'; did you mean 'Contains'"):
        case.scores["Contians"]


def test_trials_can_be_counted_and_indexed(run: Run) -> None:
    assert len(run.trials) == 2
    assert run.trials[0].output == run.trials[-1].output == "It is shipped."
    assert [trial.case.id for trial in run.trials[:1]] == ["shipped"]
    with pytest.raises(IndexError, match="the run has 2"):
        run.trials[2]


def test_numbers_say_what_they_rest_on(run: Run) -> None:
    assert run.pass_rate == 0.5
    assert run.pass_rate.of == 2
    assert 0 < run.pass_rate.low < 0.5 < run.pass_rate.high < 1
    assert run.means["Contains"] == 0.5
    assert run.means["Contains"].of == 2
    assert f"{run['lost'].pass_rate:.2f}" == "0.00"
    assert str(run.pass_rate) == "0.5"
    assert pickle.loads(pickle.dumps(run.pass_rate)).of == 2


def test_it_prints_what_the_command_line_prints(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run.print()
    printed = capsys.readouterr().out
    assert "lost" in printed
    assert "1 of 2 cases passed" in printed
    assert str(run) == printed
    out = io.StringIO()
    run.print(file=out, verbose=True)
    assert len(out.getvalue()) > len(printed)


def test_assert_passed_tells_the_whole_story(run: Run) -> None:
    with pytest.raises(AssertionError) as error:
        run.assert_passed()
    text = str(error.value)
    for part in ("FAILED  1 of 2 cases passed", "shop/lost: failed", "A-18 never came.", "It is shipped.", "sorry"):
        assert part in text
    assert "Where is A-17?" not in text


def test_a_run_can_be_saved_and_loaded(run: Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run.jsonl")
    loaded = Run.load(tmp_path / "run.jsonl")
    assert repr(loaded) == repr(run)
    assert [trial.output for trial in loaded.trials] == ["It is shipped."] * 2
    with pytest.raises(proctor.StoreError, match="cannot write the run"):
        run.save(tmp_path)


def test_answers_are_scored_again_without_asking_the_agent(tmp_path: Path) -> None:
    questions: list[str] = []
    case = Case(id="a", turns=(Turn(input="Hi", expected=Expected(output="HELLO")),))
    suite = Suite(name="s", cases=(case,), agent=lambda question: questions.append(question) or "hello")
    run = proctor.run(suite)
    assert not run

    again = run.rescore(evaluators=[lambda output: output == "hello", {"StartsWith": {"prefix": "h"}}])

    assert again
    assert (again.rescored, len(questions)) == (run.id, 1)
    assert not run, "the first run is as it was"


def test_not_failed_is_not_passed() -> None:
    run = make_run([trial("good"), trial("lost", ERROR, None, reason="OPENAI_API_KEY is not set")])
    assert not run
    with pytest.warns(Inconclusive, match=r"no case failed, but 1 of 2 have no verdict \(lost: OPENAI_API_KEY"):
        assert not run.failed
    assert [case.id for case in run.errors] == ["lost"]


def test_a_rate_of_nothing_is_not_a_number() -> None:
    run = make_run([trial("lost", ERROR, None, reason="down")])
    assert math.isnan(run.pass_rate)
    assert run.pass_rate.of == 0
    assert math.isnan(Rate.of_share(0, 0))


def test_an_evaluator_that_scored_several_turns_is_found_by_its_worst_score() -> None:
    scores = [score(turn=0), score(FAILED, 0.2, turn=1), score(turn=2)]
    assert trial("a", FAILED, "x", *scores).scores["ExactMatch"].turn == 1


def test_a_flaky_case_shows_the_trial_that_did_not_pass() -> None:
    run = make_run([trial("a", number=1), trial("a", FAILED, "No.", number=2), trial("a", number=3)])
    case = run["a"]
    assert (case.is_flaky, case.outcome, round(case.pass_rate, 2), case.pass_rate.of) == (True, FAILED, 0.67, 3)
    assert (case.trial.number, case.output, len(case.failed)) == (2, "No.", 1)


def test_a_long_list_of_cases_is_cut_in_the_one_line_form() -> None:
    run = make_run([trial(f"c{n}", FAILED) for n in range(9)])
    assert repr(run).endswith("not passed: c0, c1, c2, c3, c4 and 4 more>")


def test_the_same_id_in_two_suites_needs_the_suite() -> None:
    one = shop()
    run = proctor.run([one, Suite(name="bank", cases=one.cases, agent=one.agent)])
    with pytest.raises(KeyError) as error:
        run["lost"]
    assert str(error.value) == "'lost' is in several suites (shop, bank); write run['shop', 'lost']"
    assert run["bank", "lost"].suite == "bank"


def test_arms_are_runs_of_their_own() -> None:
    suite = shop()
    run = proctor.run(suite, arms={"old": lambda q: "It is shipped.", "new": lambda q: "Sorry, it is shipped."})
    assert {name: arm.pass_rate for name, arm in run.arms.items()} == {"old": 0.5, "new": 1.0}
    assert run.arms["new"]["lost"].passed
    assert run.arms["old"]["lost"].output == "It is shipped."
    assert [(case.id, case.arm) for case in run.failed] == [("lost", "old")]
    with pytest.raises(KeyError, match=r"'lost' ran in several arms; write run.arms\['new'\]\['lost'\]"):
        run["lost"]
    change = proctor.compare(run.arms["old"], run.arms["new"])
    assert [case.id for case in change.fixed] == ["lost"]
    assert change.broken == []


def test_a_comparison_is_neither_true_nor_false(capsys: pytest.CaptureFixture[str]) -> None:
    change = proctor.compare(proctor.run(shop()), proctor.run(shop(), agent=lambda q: "Sorry."))
    with pytest.raises(TypeError, match=r"look at .verdict or .broken"):
        assert change
    assert [case.id for case in change.broken] == ["shipped"]
    change.print()
    assert "shipped" in capsys.readouterr().out
