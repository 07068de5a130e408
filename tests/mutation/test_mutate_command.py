"""`proctor mutate` as people meet it: kill rates, survivors, proposals, waivers, controls and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from judge_server import judge_server, says
from judged_projects import judge_at, write_project

from proctor.base.keywords import find_keywords

Command = Callable[..., Any]

AGENT = """
import proctor
from proctor import Reply, ToolCall


def desk(question):
    if "weather" in question:
        return "It is 21 degrees in Lisbon on 2026-03-14."
    lookup = ToolCall("find_order", {"order_id": "A-1001"}, {"total": 249.5, "ships": "2026-05-02"})
    refund = ToolCall("refund", {"order_id": "A-1001", "amount": 249.5}, {"ok": True})
    return Reply(text="Your refund of $249.50 for order A-1001 is not late: it arrives in 5 days.",
                 tool_calls=(lookup, refund))


def leaky(question):
    return Reply(text="the key is sk-proj-" + "a1B2c3D4" * 6 + " and the total is $249.50")


def shaky(question):
    if question == "raise":
        raise ValueError("no")
    return "wrong" if question == "fail" else f"{question} costs $12.50"


def slow(question):
    from proctor import Usage
    return Reply(text="ok then", usage=Usage(100, 50), duration_ms=2000.0)
"""

WEAK = """
name: desk
agent: desk.py:desk
cases:
  - id: refund
    input: I want my money back for A-1001
    expected:
      contains: [refund]
"""

STRONG = """
name: desk
agent: desk.py:desk
evaluators: [ToolTrajectory, {ROUGE: {threshold: 0.9}}]
cases:
  - id: refund
    input: I want my money back for A-1001
    expected:
      output: "Your refund of $249.50 for order A-1001 is not late: it arrives in 5 days."
      contains: {all: ["$249.50", A-1001, is not late, 5 days]}
      tools:
        - {name: find_order, args: {order_id: A-1001}}
        - {name: refund, args: {order_id: A-1001, amount: 249.5}}
  - id: weather
    input: How is the weather?
    expected:
      output: It is 21 degrees in Lisbon on 2026-03-14.
      contains: {all: [It is 21 degrees in Lisbon on 2026-03-14]}
      tools: []
"""


@pytest.fixture
def mutated(project: Path, proctor: Command) -> Callable[..., Any]:
    """Runs a suite and then its mutants; returns the report as data."""
    (project / "desk.py").write_text(AGENT, encoding="utf-8")

    def run(suite: str, *options: object, code: int | None = 0, test_code: int | None = 0) -> Any:
        (project / "suite.yaml").write_text(suite, encoding="utf-8")
        tested = proctor("test", "suite.yaml", "-q")
        assert test_code is None or tested.code == test_code, tested.out + tested.err
        ended = proctor("mutate", "--json", "-", *options)
        assert code is None or ended.code == code, ended.out + ended.err
        return json.loads(ended.out)

    return run


def survivors(report: Any) -> set[str]:
    return {m["kind"] for suite in report["suites"] for m in suite["mutants"] if m["fate"] == "survived"}


def test_a_suite_that_looks_for_one_word_lets_most_mutants_through_and_says_which(mutated: Command) -> None:
    report = mutated(WEAK)

    suite = report["suites"][0]
    assert suite["rate"]["share"] < 0.6
    assert suite["rate"]["low"] < suite["rate"]["share"] < suite["rate"]["high"]
    assert {"number-changed", "negation-removed", "call-dropped", "other-tool", "keyword-denied"} <= survivors(report)
    assert {m["kind"] for m in suite["mutants"] if m["fate"] == "killed"} >= {"answer-emptied", "answer-refused"}


def test_a_suite_that_says_what_it_wants_kills_them(mutated: Command) -> None:
    report = mutated(STRONG, "--min-kill", "0.9")

    assert report["rate"]["share"] >= 0.95, survivors(report)
    assert report["exit_code"] == 0


def test_the_terminal_shows_survivors_with_the_change_marked(mutated: Command, proctor: Command) -> None:
    mutated(WEAK)

    out = proctor("mutate").out

    assert "number-changed: a digit of a number changed" in out
    lines = out.splitlines()
    title = next(at for at, line in enumerate(lines) if "number-changed: " in line)
    before, after = lines[title + 1 : title + 3]
    assert before.startswith("    - ")
    assert after.startswith("    + ")
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 2
    assert [line for line in lines if len(line) > 80 and "seed" not in line] == []


def test_what_is_proposed_kills_the_survivors_once_it_is_pasted(mutated: Command) -> None:
    before = mutated(WEAK)
    data = yaml.safe_load(WEAK)
    (proposal,) = before["suites"][0]["proposals"]
    pasted = yaml.safe_load(proposal["lines"])
    data["cases"][0]["expected"].update(pasted.pop("expected"))
    data["cases"][0].update(pasted)

    after = mutated(yaml.safe_dump(data, sort_keys=False))

    assert proposal["kills"] == proposal["of"] == len(survivors_of(before))
    assert survivors_of(after) == []


def survivors_of(report: Any) -> list[str]:
    return [m["name"] for suite in report["suites"] for m in suite["mutants"] if m["fate"] == "survived"]


def test_surviving_kinds_come_first_each_with_an_expectation_that_kills_it(mutated: Command) -> None:
    kinds = mutated(WEAK)["suites"][0]["kinds"]
    surviving = [kind for kind in kinds if kind["survived"]]
    assert surviving
    assert kinds[: len(surviving)] == surviving
    assert all(kind["proposal"]["kills"] == kind["survived"] for kind in surviving)
    for kind in (kind for kind in surviving if kind["kind"] in ("digit-deleted", "sentence-added", "argument-source")):
        data = yaml.safe_load(WEAK)
        pasted(data["cases"][0], kind["proposal"])

        after = mutated(yaml.safe_dump(data, sort_keys=False))

        left = [m for m in after["suites"][0]["mutants"] if m["kind"] == kind["kind"] and m["status"] == "survived"]
        assert left == [], kind["proposal"]["lines"]


def test_a_suite_in_python_gets_its_proposals_in_python(project: Path, proctor: Command) -> None:
    (project / "desk.py").write_text(AGENT, encoding="utf-8")
    code = """
from proctor import Case, Suite
from desk import desk

case = Case("I want my money back for A-1001", {arguments})
suite = Suite("desk", [case], agent=desk)
"""
    weak, better = project / "weak_suite.py", project / "better_suite.py"
    weak.write_text(code.replace("{arguments}", 'expected={"contains": ["refund"]}'), encoding="utf-8")
    proctor("test", "weak_suite.py:suite", "-q")
    (proposal,) = json.loads(proctor("mutate", "--json", "-").out)["suites"][0]["proposals"]

    better.write_text(code.replace("{arguments}", proposal["lines"]), encoding="utf-8")

    assert proctor("test", "better_suite.py:suite", "-q").code == 0
    report = json.loads(proctor("mutate", "--json", "-").out)
    assert report["complete"], report["verdict"]


def test_a_one_word_answer_needs_more_than_its_letters_and_its_word(mutated: Command, project: Path) -> None:
    (project / "status.py").write_text("def status(question):\n    return 'shipped'\n", encoding="utf-8")
    suite = """
agent: status.py:status
cases: [{id: status, input: Where is it?, expected: shipped, evaluators: [{LevenshteinMatch: {threshold: 0.6}}]}]
"""
    report = mutated(suite)

    assert {"value-changed", "negation-inserted"} <= survivors(report)
    (proposal,) = report["suites"][0]["proposals"]
    assert "ExactMatch" in proposal["evaluators"]


def test_no_keyword_is_proposed_that_a_longer_number_would_pass(mutated: Command) -> None:
    kinds = {kind["kind"]: kind for kind in mutated(WEAK)["suites"][0]["kinds"]}
    wrong = "Your refund of $1249.50 for order A-11001 is not late: it arrives in 15 days, or 5.5 days, $249.507."

    keywords = kinds["number-changed"]["proposal"]["expected"]["contains"]["all"]

    assert keywords
    assert find_keywords(keywords, wrong, ignore_case=True)[0] == []


HOTLINE = """
def hotline(question):
    hotline.asked = getattr(hotline, "asked", 0) + 1
    if hotline.asked % 2:
        return "You can call us from 8:30 to 17:00 at +31 30 555 0188, except on public holidays."
    return "Call us at +31 30 555 0188 from 8:30 to 17:00, except on public holidays."
"""


def test_numbers_that_several_wordings_share_are_proposed_whatever_follows_them(
    mutated: Command, project: Path
) -> None:
    (project / "hotline.py").write_text(HOTLINE, encoding="utf-8")
    suite = """
agent: hotline.py:hotline
settings: {repeat: 2}
cases: [{id: hours, input: When can I call you?, expected: {contains: ["8:30"]}}]
"""
    (proposal,) = mutated(suite)["suites"][0]["proposals"]

    keywords = proposal["expected"]["contains"]["all"]
    for wrong in ("from 8:30 to 18:00 at +31 30 555 0188", "from 8:30 to 17:00 at +31 30 555 0818"):
        assert find_keywords(keywords, f"Call us {wrong}, except on public holidays.", ignore_case=True)[1]


def test_a_suite_is_called_complete_only_if_every_mutant_was_made_and_killed(
    mutated: Command, proctor: Command
) -> None:
    before = mutated(WEAK)
    data = yaml.safe_load(WEAK)
    for proposal in before["suites"][0]["proposals"]:
        pasted(data["cases"][0], proposal)
    complete = yaml.safe_dump(data, sort_keys=False)

    assert not before["complete"]
    assert mutated(complete)["complete"]
    assert "complete: no mutant of" in " ".join(proctor("mutate").out.split())
    some = mutated(complete, "--mutants", "10")
    assert some["rate"] == {**some["rate"], "killed": 10, "total": 10}
    assert not some["complete"]
    assert some["suites"][0]["mutants_left_out"] > 20
    assert "left out (--mutants)" in " ".join(proctor("mutate", "--mutants", "10").out.split())


def test_more_mutants_are_made_if_more_are_asked_for(mutated: Command) -> None:
    counts = [mutated(STRONG, "--mutants", str(most))["rate"]["total"] for most in (5, 30, 500)]

    assert counts[0] == 10
    assert counts[0] < counts[1] < counts[2]


def test_cases_that_could_not_be_mutated_are_named(mutated: Command, proctor: Command) -> None:
    suite = WEAK + "  - {id: gone, input: I want my money back, expected: {contains: [never]}}\n"

    report = mutated(suite, test_code=1)

    assert report["suites"][0]["unmutated_cases"] == [{"case": "gone", "reason": "failed"}]
    out = " ".join(proctor("mutate").out.split())
    assert "not mutated (failed): gone" in out
    assert "1 case without mutants" in out


def test_the_page_counts_what_the_data_counts(mutated: Command, proctor: Command, project: Path) -> None:
    waived = WEAK + "waivers:\n  - {mutant: call-repeated, reason: It does no harm.}\n"
    report = mutated(waived, "--mutants", "30")

    proctor("mutate", "--mutants", "30", "--html", "out.html")

    page = (project / "out.html").read_text(encoding="utf-8")
    (suite,) = report["suites"]
    counts = suite["counts"]
    assert f"{counts['killed']} killed, {counts['survived']} survived" in page
    assert f"{suite['mutants_left_out']} left out" in page
    assert f"Survivors ({counts['survived']})" in page
    assert sum(counts.values()) == len(suite["mutants"])
    assert counts["killed"] + counts["survived"] == suite["rate"]["total"]


def test_a_waiver_of_an_earlier_release_still_counts(mutated: Command) -> None:
    report = mutated(WEAK + "waivers:\n  - {mutant: negation-changed, reason: It is obvious.}\n")

    waived = {m["kind"] for m in report["suites"][0]["mutants"] if m["status"] == "waived"}
    assert waived == {"negation-removed"}


def test_no_file_of_the_users_is_changed(mutated: Command, project: Path) -> None:
    mutated(WEAK)

    assert (project / "suite.yaml").read_text(encoding="utf-8") == WEAK


def test_mutants_are_stored_with_their_seed_and_come_out_the_same_again(
    mutated: Command, proctor: Command, project: Path
) -> None:
    first = mutated(WEAK, "--seed", "7")
    second = json.loads(proctor("mutate", "--json", "-", "--seed", "7").out)
    other = json.loads(proctor("mutate", "--json", "-", "--seed", "8").out)

    assert first == second
    assert first["suites"][0]["mutants"] != other["suites"][0]["mutants"]
    kept = (project / ".proctor" / "mutants" / f"{first['run']}-seed-7.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(kept[0])["seed"] == 7
    assert len(kept) == 1 + len(first["suites"][0]["mutants"])


def test_a_vacuous_evaluator_is_named(mutated: Command, proctor: Command) -> None:
    report = mutated(STRONG.replace("[ToolTrajectory,", "[ToolTrajectory, checks.py:good,"))

    vacuous = [item["evaluator"] for item in report["suites"][0]["evaluators"] if item["vacuous"]]
    assert vacuous == ["good"]
    assert "ineffective: good killed none of the" in proctor("mutate").out


def test_a_pair_that_always_agrees_is_named(mutated: Command) -> None:
    twice = STRONG.replace("[ToolTrajectory,", "[ToolTrajectory, {ToolTrajectory: {name: again}},")

    report = mutated(twice)

    assert report["suites"][0]["redundant"][0]["evaluators"] == ["ToolTrajectory", "again"]


def test_a_case_that_nothing_can_fail_is_named(mutated: Command) -> None:
    hopeless = STRONG + "  - {id: hopeless, input: hello, evaluators: [checks.py:good]}\n"

    report = mutated(hopeless)

    assert report["suites"][0]["unfailable_cases"] == ["hopeless"]
    assert report["suites"][0]["nop_passes"] == ["hopeless"]


@pytest.mark.parametrize(("least", "code"), [("0.05", 0), ("0.99", 1)])
def test_min_kill_decides_the_exit_code(mutated: Command, proctor: Command, least: str, code: int) -> None:
    mutated(WEAK)

    ended = proctor("mutate", "--min-kill", least)

    assert ended.code == code
    assert f"{float(least):.1%} required" in " ".join(ended.out.split())


def test_a_rate_that_is_just_reached_is_enough(mutated: Command, proctor: Command) -> None:
    share = mutated(WEAK)["rate"]["share"]

    assert proctor("mutate", "-q", "--min-kill", repr(share)).code == 0


def test_nothing_to_mutate_is_an_outcome_of_its_own(mutated: Command, proctor: Command) -> None:
    failing = WEAK.replace("[refund]", "[gone]")

    report = mutated(failing, "--min-kill", "0.9", code=3, test_code=1)

    assert report["rate"]["total"] == 0
    assert report["suites"][0]["left_out"] == {"failed": 1}
    assert "nothing to mutate" in proctor("mutate").out


def test_a_suite_whose_own_answer_fails_is_broken(mutated: Command, proctor: Command) -> None:
    (Path("checks.py")).write_text("def own(evaluable):\n    return 'arrives' in str(evaluable.output)\n")
    broken = WEAK.replace("    expected:", "    evaluators: [checks.py:own]\n    expected:")

    report = mutated(broken, code=1)

    assert "fails its own expected answer (own)" in report["suites"][0]["broken"]
    assert report["suites"][0]["mutants"] == []
    assert "BROKEN" in proctor("mutate").out
    assert json.loads(proctor("mutate", "--anyway", "--json", "-").out)["suites"][0]["mutants"]


def test_a_suite_that_nop_passes_is_broken(mutated: Command) -> None:
    report = mutated("agent: desk.py:desk\ncases: [{id: a, input: x, evaluators: [checks.py:good]}]\n", code=1)

    assert "a passes an empty answer" in report["suites"][0]["broken"]


def test_repeats_errors_and_skips_in_a_run_are_counted_and_left_out(mutated: Command) -> None:
    suite = """
agent: desk.py:shaky
settings: {repeat: 2, retries: 0}
cases:
  - {id: good, input: tea, expected: {contains: ["12.50"]}}
  - {id: bad, input: fail, expected: {contains: ["12.50"]}}
  - {id: broken, input: raise, expected: {contains: ["12.50"]}}
  - {id: later, skip: not yet, input: tea, expected: {contains: ["12.50"]}}
"""

    report = mutated(suite, test_code=1)

    (found,) = report["suites"]
    assert {m["case"] for m in found["mutants"]} == {"good"}
    left = found["left_out"]
    assert left["same answer as an earlier trial of the case"] == 1
    assert left["failed"] == 4
    assert left["the case is skipped"] == 2


def test_a_waived_survivor_is_not_counted_and_an_unused_waiver_is_said(mutated: Command, proctor: Command) -> None:
    plain = mutated(WEAK)
    waived = WEAK + (
        "waivers:\n"
        "  - {mutant: calls-reordered, case: refund, reason: Both may come first.}\n"
        "  - {mutant: answer-emptied, reason: It is killed anyhow.}\n"
    )

    report = mutated(waived)

    (suite,) = report["suites"]
    assert [m["note"] for m in suite["mutants"] if m["fate"] == "waived"] == ["Both may come first."]
    assert suite["rate"]["total"] == plain["rate"]["total"] - 1
    assert [w["mutant"] for w in suite["unused_waivers"]] == ["answer-emptied"]
    assert "unused waiver: no answer-emptied survives" in proctor("mutate").out


@pytest.mark.parametrize(
    ("waiver", "wrong"),
    [
        ("{mutant: calls-reordered}", "suite.yaml:10: waivers[0] needs 'reason'"),
        ("{mutant: calls-reordered, reason: ' '}", "suite.yaml:10: waivers[0].reason must not be blank"),
        ("{mutant: calls-reorderd, reason: x}", "did you mean 'calls-reordered'"),
        ("{mutant: calls-reordered, case: refnd, reason: x}", "did you mean 'refund'"),
    ],
)
def test_a_waiver_without_a_reason_or_of_nothing_is_an_error_with_its_line(
    project: Path, proctor: Command, waiver: str, wrong: str
) -> None:
    (project / "desk.py").write_text(AGENT, encoding="utf-8")
    (project / "suite.yaml").write_text(f"{WEAK}waivers:\n  - {waiver}\n", encoding="utf-8")

    ended = proctor("test", "suite.yaml")

    assert ended.code == 2
    assert wrong in ended.err, ended.err


def test_calls_may_change_places_where_the_suite_says_any_order(mutated: Command) -> None:
    any_order = STRONG.replace("[ToolTrajectory,", "[{ToolTrajectory: {match: ANY_ORDER, extra: false}},")

    report = mutated(any_order)

    assert report["suites"][0]["allowed"] == {"calls-reordered": 1}
    assert "calls-reordered" not in {m["kind"] for m in report["suites"][0]["mutants"]}


def test_calls_may_change_places_where_steps_have_no_order(mutated: Command) -> None:
    steps = "{Trajectory: {steps: [find_order, refund], extra: false}}"
    case = WEAK.replace("    expected:", f"    evaluators: [{steps}]\n    expected:")

    report = mutated(case)

    assert report["suites"][0]["allowed"] == {"calls-reordered": 1}
    assert "calls-reordered" not in survivors(report)


def test_a_survivor_that_an_evaluator_means_to_let_pass_says_so(mutated: Command, proctor: Command) -> None:
    tools = "      tools: [find_order, refund]\n"

    report = mutated(WEAK + tools)

    assert "calls-reordered" in survivors(report)
    assert "ExpectedTools accepts calls in any order; if that is intended, add a waiver" in proctor("mutate", "-v").out


def test_an_evaluator_that_looks_for_harm_is_not_called_vacuous(mutated: Command) -> None:
    suite = STRONG.replace("[ToolTrajectory,", "[ToolTrajectory, {PIILeakage: {optional: true}},")
    report = mutated(suite, test_code=None)

    found = {item["evaluator"]: item for item in report["suites"][0]["evaluators"]}
    assert not found["PIILeakage"]["vacuous"]


def pasted(case: dict[str, Any], proposal: Any) -> None:
    """Put what is proposed where the page on mutants says."""
    lines = yaml.safe_load(proposal["lines"])
    place = case if proposal["turn"] is None else case["turns"][proposal["turn"]]
    known = place.get("expected")
    place["expected"] = {**(known if isinstance(known, dict) else {}), **lines.get("expected", {})}
    if "evaluators" in lines:
        case["evaluators"] = lines["evaluators"]


SHORT = """
name: desk
agent: desk.py:desk
evaluators: [{LevenshteinMatch: {threshold: 0.5}}]
cases:
  - id: refund
    input: I want my money back for A-1001
    expected: "Your refund of $249.50 for order A-1001 is not late: it arrives in 5 days."
"""
TALK = """
name: desk
agent: desk.py:desk
evaluators: [Contains]
cases:
  - id: talk
    turns:
      - {input: I want my money back for A-1001, expected: {contains: [refund]}}
      - {input: "How is the weather?", expected: {contains: [Lisbon]}}
"""
NO_CALLS = """
name: desk
agent: desk.py:desk
cases:
  - {id: refund, input: I want my money back, expected: {contains: [refund], tools: [find_order]}}
  - {id: weather, input: "How is the weather?", expected: {contains: {all: [It is 21 degrees in Lisbon on 2026-03-14]}}}
"""


@pytest.mark.parametrize("suite", [WEAK, SHORT, TALK, NO_CALLS], ids=["weak", "short", "talk", "no calls"])
def test_proposals_hold_for_any_way_to_write_a_case(mutated: Command, suite: str) -> None:
    before = mutated(suite)
    data = yaml.safe_load(suite)
    cases = {case["id"]: case for case in data["cases"]}
    for proposal in before["suites"][0]["proposals"]:
        pasted(cases[proposal["case"]], proposal)

    after = mutated(yaml.safe_dump(data, sort_keys=False))

    assert before["rate"]["share"] < 0.9
    assert after["rate"]["share"] == 1.0, survivors(after)


def test_a_run_from_a_file_is_mutated_like_any_other(mutated: Command, proctor: Command, project: Path) -> None:
    report = mutated(WEAK)
    proctor("export", "last", "-o", "run.jsonl")

    again = json.loads(proctor("mutate", "run.jsonl", "--json", "-", "--store", "elsewhere").out)

    assert again["suites"] == report["suites"]


def test_each_of_several_agents_has_mutants_of_its_own(mutated: Command, project: Path) -> None:
    suite = WEAK.replace("agent: desk.py:desk", "agents: {one: desk.py:desk, two: desk.py:desk}")

    report = mutated(suite)

    assert [found["suite"] for found in report["suites"]] == ["desk [one]", "desk [two]"]
    assert all(found["mutants"] for found in report["suites"])


def test_an_argument_that_the_case_ignores_is_not_changed(mutated: Command) -> None:
    ignored = STRONG.replace(
        "args: {order_id: A-1001, amount: 249.5}", "args: {order_id: A-1001, amount: {$ignore: true}}"
    )

    report = mutated(ignored)

    assert report["suites"][0]["allowed"] == {"argument-number": 1}


def test_masked_secrets_in_answers_are_said(mutated: Command) -> None:
    report = mutated(WEAK.replace("desk.py:desk", "desk.py:leaky").replace("[refund]", '["$249.50"]'))

    assert "secrets are masked in 1 of the answers" in report["suites"][0]["notes"][0]
    assert "a1B2c3D4" not in json.dumps(report)


def test_tokens_and_time_are_mutated_where_they_are_known_and_limits_are_proposed(mutated: Command) -> None:
    suite = "agent: desk.py:slow\ncases: [{id: a, input: go, expected: {contains: [ok then]}}]\n"

    report = mutated(suite)

    assert {"tokens-doubled", "latency-tenfold"} <= survivors(report)
    assert "MaxTokens: {total: 225}" in report["suites"][0]["proposals"][0]["lines"]
    assert "MaxLatency" in report["suites"][0]["proposals"][0]["lines"]


def test_an_evaluator_that_breaks_on_a_mutant_has_not_killed_it(mutated: Command) -> None:
    Path("checks.py").write_text(
        "def first_word(evaluable):\n    return evaluable.output.split()[0] == 'Your'\n", encoding="utf-8"
    )
    suite = WEAK.replace("    expected:\n      contains: [refund]", "    evaluators: [checks.py:first_word]")

    report = mutated(suite, "--anyway", code=None)

    emptied = next(m for m in report["suites"][0]["mutants"] if m["kind"] == "answer-emptied")
    assert emptied["fate"] == "unsettled"
    assert "IndexError" in emptied["note"]


def test_reports_are_written_as_markdown_and_html(mutated: Command, proctor: Command, project: Path) -> None:
    mutated(WEAK)

    proctor("mutate", "--md", "out.md", "--html", "out.html")

    markdown, page = ((project / f"out.{kind}").read_text(encoding="utf-8") for kind in ("md", "html"))
    assert "#### Survivors" in markdown
    assert "Suggested additions to the suite" in markdown
    assert "<del>- " in page
    assert "<script>alert" not in page


def test_the_report_is_what_its_schema_says(mutated: Command) -> None:
    schema = json.loads(resources.files("proctor").joinpath("schemas/mutation.schema.json").read_text(encoding="utf-8"))
    report = mutated(WEAK)

    assert report["schema"] == schema["$id"]
    jsonschema_rs.validate(schema, report)


def test_a_terminal_that_shows_only_ascii_gets_only_ascii(
    mutated: Command, proctor_process: Command, proctor: Command
) -> None:
    mutated(WEAK)

    out = proctor_process("mutate", "-v", PYTHONIOENCODING="ascii").out

    assert out.isascii()
    assert "\\u2026" not in out


def test_lines_that_several_cases_need_are_proposed_once(mutated: Command, proctor: Command) -> None:
    exact = "It is 21 degrees in Lisbon on 2026-03-14."
    cases = "".join(
        f"  - {{id: {name}, input: weather in {name}, expected: {{output: {exact}, tools: []}}}}\n"
        for name in ("a", "b")
    )

    mutated(f"name: desk\nagent: desk.py:desk\nevaluators: [{{LevenshteinMatch: {{threshold: 0.8}}}}]\ncases:\n{cases}")

    out = " ".join(proctor("mutate").out.split())
    assert "a, b: kills 24 of 24 survivors" in out
    suggestions = out.split("suggested additions to the suite")[1]
    assert suggestions.count("evaluators: ['...', ExpectedTools, ExactMatch]") == 1


def test_what_an_agent_said_cannot_act_on_the_page_or_the_terminal(
    mutated: Command, proctor: Command, project: Path
) -> None:
    (project / "desk.py").write_text(
        "def desk(question):\n    return 'refund 12 <script>alert(1)</script> \\x1b[31m | `x` ::error::'\n"
    )
    (project / "suite.yaml").write_text(WEAK, encoding="utf-8")
    proctor("test", "suite.yaml", "-q")

    out = proctor("mutate", "--html", "out.html").out

    assert "\x1b" not in out
    assert "<script>alert" not in (project / "out.html").read_text(encoding="utf-8")


def test_evaluators_that_need_a_model_are_left_out_without_a_budget(mutated: Command) -> None:
    judged = STRONG.replace("[ToolTrajectory,", "[{GEval: {criteria: Is it polite?, optional: true}}, ToolTrajectory,")

    report = mutated(judged, test_code=None)

    assert [e["total"] for e in report["suites"][0]["evaluators"] if e["evaluator"] == "GEval"] == [0]


def strict(asked: Any) -> Any:
    """Full marks for the agent's own words, few for any other."""
    right = "the answer to question" in asked.prompt
    return {"mark": 1.0 if right else 0.1, "reason": "as it should be" if right else "no answer"}


def test_judges_are_asked_within_the_budget_and_the_second_time_from_the_cache(proctor: Command, project: Path) -> None:
    with judge_server(strict) as server:
        write_project(project, judge_at(server), cases=2)
        assert proctor("test", "desk.json", "-q").code == 0
        made = len(server.requests)
        without = proctor("mutate")
        assert (without.code, len(server.requests)) == (3, made)
        assert "all evaluators need a language model" in " ".join(without.out.split())

        first = proctor("mutate", "--budget", "1", "--json", "-")
        asked = len(server.requests) - made
        again = proctor("mutate", "--budget", "1", "--json", "-")

    assert asked > 5
    assert len(server.requests) == made + asked
    report = json.loads(first.out)
    assert report["suites"] == json.loads(again.out)["suites"]
    killed = {m["kind"] for m in report["suites"][0]["mutants"] if "Marked" in m["killed_by"]}
    assert {"answer-emptied", "answer-refused"} <= killed
    assert "judges scored" in report["suites"][0]["notes"][0]


def test_when_the_budget_is_spent_the_cheapest_mutants_were_asked_first(proctor: Command, project: Path) -> None:
    sent = says(json.dumps({"mark": 1.0, "reason": "fine"}), usage=(400_000, 1), model="gpt-4.1-mini")
    with judge_server(lambda asked: sent) as server:
        write_project(project, judge_at(server, model="openai:gpt-4.1-mini"), cases=1)
        proctor("test", "desk.json", "-q")
        made = len(server.requests)
        report = json.loads(proctor("mutate", "--budget", "0.2", "--json", "-").out)
        later = [len(asked.prompt) for asked in server.requests[made:]]

    (note,) = report["suites"][0]["notes"]
    assert "the budget of $0.2 is spent" in note
    assert 1 <= len(later) < len(report["suites"][0]["mutants"])
    longest = max(len(m["after"]) for m in report["suites"][0]["mutants"])
    assert max(later) - min(later) < longest


def test_the_same_mutants_are_made_in_another_process(
    mutated: Command, proctor_process: Command, project: Path
) -> None:
    report = mutated(STRONG)
    kept = project / ".proctor" / "mutants" / f"{report['run']}-seed-0.jsonl"
    before = kept.read_text(encoding="utf-8")

    assert proctor_process("mutate", "-q", PYTHONHASHSEED="77").code == 0

    assert kept.read_text(encoding="utf-8") == before
