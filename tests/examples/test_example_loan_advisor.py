"""The loan advisor example: right and wrong agents get the same verdicts whatever the format of the suite."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from command_line import COMMAND
from hypothesis import given
from hypothesis import strategies as st
from repository import ROOT
from tool_marks import needing

import proctor
from proctor.base.json_data import to_json
from proctor.base.references import load_file

EXAMPLE = ROOT / "examples" / "loan_advisor"
FORMATS = {
    "native": "suite.yaml",
    "keywords": "keywords.json",
    "python": "test_cases.py:TEST_CASES",
    "adk": "adk/loan.test.json",
    "pixie": "pixie/dataset.json",
    "holodeck": "holodeck/agent.yaml",
}
BY_FORMAT = [needing(name, name) if name in ("adk", "holodeck", "pixie") else name for name in FORMATS]
NAMES_NO_AGENT = {"keywords", "python", "adk"}
HAS_CONVERSATIONS = {"native", "adk", "holodeck"}
SINGLE = {
    "payment-basic",
    "payment-in-years",
    "eligibility-yes",
    "eligibility-no",
    "impossible-score",
    "affordability",
    "comparison",
    "schedule",
    "off-topic",
}
BEYOND_THE_WRONG_AGENT = {"payment-basic", "payment-in-years", "comparison", "schedule", "follow-up"}
SIBLINGS = ("agent", "app", "checks", "figures", "money", "tools")
"""Modules the example imports by names that anybody's could have."""

Verdicts = Callable[[str, str], dict[str, proctor.Outcome]]


@pytest.fixture(scope="module", autouse=True)
def own_modules() -> Iterator[None]:
    """Other examples have modules of the same names, and one process has room for one of each."""
    before = {name: sys.modules.pop(name) for name in SIBLINGS if name in sys.modules}
    sys.path.insert(0, str(EXAMPLE))
    yield
    sys.path.remove(str(EXAMPLE))
    for name in SIBLINGS:
        sys.modules.pop(name, None)
    sys.modules.update(before)


@pytest.fixture(scope="module")
def tools() -> ModuleType:
    return load_file(EXAMPLE / "tools.py")


def run(format_name: str, agent: str) -> proctor.Run:
    own = {"right": None if format_name not in NAMES_NO_AGENT else f"{EXAMPLE}/agent.py:agent"}
    own["wrong"] = f"{EXAMPLE}/agent_wrong.py:{'WrongLoanAdvisor' if format_name == 'pixie' else 'agent'}"
    return proctor.run(f"{EXAMPLE}/{FORMATS[format_name]}", own.get(agent, agent))


@pytest.fixture(scope="module")
def verdicts() -> Verdicts:
    known: dict[tuple[str, str], dict[str, proctor.Outcome]] = {}

    def look_up(format_name: str, agent: str) -> dict[str, proctor.Outcome]:
        if (format_name, agent) not in known:
            (suite,) = proctor.verdict(run(format_name, agent)).suites
            known[format_name, agent] = {case.case_id: case.outcome for case in suite.cases}
        return known[format_name, agent]

    return look_up


def ids_of(format_name: str) -> set[str]:
    return SINGLE | ({"follow-up"} if format_name in HAS_CONVERSATIONS else set())


@pytest.mark.parametrize("agent", ["right", "oracle"])
@pytest.mark.parametrize("format_name", BY_FORMAT)
def test_the_right_agent_and_the_oracle_pass_every_case(format_name: str, agent: str, verdicts: Verdicts) -> None:
    assert verdicts(format_name, agent) == dict.fromkeys(ids_of(format_name), proctor.Outcome.PASSED)


@pytest.mark.parametrize("format_name", BY_FORMAT)
def test_an_agent_that_says_nothing_fails_every_case(format_name: str, verdicts: Verdicts) -> None:
    assert verdicts(format_name, "nop") == dict.fromkeys(ids_of(format_name), proctor.Outcome.FAILED)


@pytest.mark.parametrize("format_name", BY_FORMAT)
def test_the_wrong_agent_fails_where_interest_or_memory_matters_and_nowhere_else(
    format_name: str, verdicts: Verdicts
) -> None:
    failed = {case for case, outcome in verdicts(format_name, "wrong").items() if outcome is proctor.Outcome.FAILED}
    passed = {case for case, outcome in verdicts(format_name, "wrong").items() if outcome is proctor.Outcome.PASSED}
    assert failed == BEYOND_THE_WRONG_AGENT & ids_of(format_name)
    assert passed == ids_of(format_name) - BEYOND_THE_WRONG_AGENT


@pytest.mark.needs("adk", "holodeck", "pixie")
@pytest.mark.parametrize("agent", ["right", "wrong", "oracle", "nop"])
def test_the_verdict_on_a_case_does_not_depend_on_the_format(agent: str, verdicts: Verdicts) -> None:
    by_case: dict[str, set[proctor.Outcome]] = {}
    for format_name in FORMATS:
        for case, outcome in verdicts(format_name, agent).items():
            by_case.setdefault(case, set()).add(outcome)
    assert by_case.keys() == SINGLE | {"follow-up"}
    assert {case: outcomes for case, outcomes in by_case.items() if len(outcomes) > 1} == {}


@pytest.mark.needs("adk", "holodeck", "pixie")
def test_every_format_asks_the_same_questions_and_expects_the_same_answers() -> None:
    questions: dict[str, set[str]] = {}
    answers: dict[str, set[str]] = {}
    for place in FORMATS.values():
        (suite,) = proctor.load(f"{EXAMPLE}/{place}")
        for case in suite.cases:
            for index, turn in enumerate(case.turns):
                key = f"{case.id} {index}"
                asked = turn.input["question"] if isinstance(turn.input, dict) else turn.input
                questions.setdefault(key, set()).add(asked)
                if turn.expected.output is not proctor.UNSET:
                    answers.setdefault(key, set()).add(turn.expected.output)
    assert {key: texts for key, texts in questions.items() if len(texts) > 1} == {}
    assert {key: texts for key, texts in answers.items() if len(texts) > 1} == {}
    assert answers.keys() == questions.keys()


@pytest.mark.parametrize("format_name", BY_FORMAT)
def test_no_evaluator_breaks(format_name: str) -> None:
    scores = [score for trial in run(format_name, "wrong").trials for score in trial.scores]
    assert [score for score in scores if score.outcome is proctor.Outcome.ERROR] == []


def test_every_tool_is_recorded_with_its_result_as_plain_data(tools: ModuleType) -> None:
    replies = [reply for trial in run("native", "right").trials for reply in trial.replies]
    calls = {call.name: call for reply in replies for call in reply.tool_calls if call.error is None}
    assert calls.keys() == tools.TOOLS.keys()
    payment = calls["calculate_loan_payment"]
    assert payment.result["monthly_payment"] == 1151.46
    assert calls["compare_loans"].result["tradeoff"] == "lower payment costs more"
    assert calls["amortization_schedule"].result["rows"][-1]["balance"] == 0
    for call in calls.values():
        json.dumps(call.result, allow_nan=False)
        assert to_json(tools.TOOLS[call.name](**call.arguments)) == call.result


def test_a_tool_that_refuses_is_recorded_with_its_reason() -> None:
    (trial,) = (trial for trial in run("native", "right").trials if trial.case.id == "impossible-score")
    (call,) = trial.replies[0].tool_calls
    assert call.error == "InvalidLoan: a credit score lies between 300 and 850"


def test_the_wrong_agent_forgets_what_the_follow_up_is_about() -> None:
    (trial,) = (trial for trial in run("native", "wrong").trials if trial.case.id == "follow-up")
    assert trial.replies[1].tool_calls == ()
    (second,) = (score for score in trial.scores if score.evaluator == "ToolTrajectory" and score.turn == 1)
    assert second.reasoning.startswith("missing calculate_loan_payment(")


def commands(block: int) -> list[str]:
    text = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    blocks: list[str] = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    return blocks[block].strip().splitlines()


@pytest.mark.process
@pytest.mark.parametrize(
    ("command", "code"),
    [(c, 0) for c in commands(0)] + [(c, 1) for c in commands(1)],
    ids=lambda value: str(value)[-60:],
)
def test_the_commands_of_the_readme_do_what_it_says(command: str, code: int, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "loan_advisor", ignore=shutil.ignore_patterns("__pycache__"))
    program, *arguments = shlex.split(command)
    assert program == "proctor"
    done = subprocess.run([*COMMAND, *arguments], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == code, done.stdout + done.stderr
    assert done.stderr == ""


def test_the_payment_of_the_guide_is_exact(tools: ModuleType) -> None:
    payment = tools.calculate_loan_payment(50_000, 0.05, 36)
    assert (payment.monthly_payment, payment.total_payment) == (Decimal("1498.54"), Decimal("53947.61"))


AMOUNTS = st.decimals(min_value="0.01", max_value="10000000", places=2)
RATES = st.decimals(min_value=0, max_value=1, places=6)
TERMS = st.integers(min_value=1, max_value=600)


@given(AMOUNTS, RATES, TERMS)
def test_a_schedule_pays_back_exactly_the_loan(tools: ModuleType, amount: Decimal, rate: Decimal, months: int) -> None:
    schedule = tools.amortization_schedule(amount, rate, months)
    rows = schedule.rows
    assert sum(row.principal for row in rows) == amount
    assert rows[-1].balance == 0
    assert len(rows) <= months
    assert all(row.payment == row.principal + row.interest for row in rows)
    assert schedule.total_payment == sum(row.payment for row in rows) == amount + schedule.total_interest


@given(AMOUNTS, RATES, TERMS)
def test_what_is_owed_never_rises_and_payments_are_equal_but_for_the_last(
    tools: ModuleType, amount: Decimal, rate: Decimal, months: int
) -> None:
    rows = tools.amortization_schedule(amount, rate, months).rows
    balances = [amount, *(row.balance for row in rows)]
    assert balances == sorted(balances, reverse=True)
    assert len({row.payment for row in rows[:-1]}) <= 1
    assert all(row.interest >= 0 for row in rows)


@given(AMOUNTS, RATES, TERMS)
def test_the_totals_of_a_payment_are_consistent(tools: ModuleType, amount: Decimal, rate: Decimal, months: int) -> None:
    payment = tools.calculate_loan_payment(amount, rate, months)
    assert payment.total_payment == amount + payment.total_interest
    assert payment.total_interest >= 0
    assert abs(payment.monthly_payment * months - payment.total_payment) <= Decimal("0.005") * (months + 1)


@given(AMOUNTS, st.decimals(min_value="0.000001", max_value=1, places=6), TERMS)
def test_the_payments_are_worth_the_loan_today(tools: ModuleType, amount: Decimal, rate: Decimal, months: int) -> None:
    payment = tools.calculate_loan_payment(amount, rate, months).monthly_payment
    discount = 1 / (1 + rate / 12)
    worth = payment * sum(discount**month for month in range(1, months + 1))
    assert abs(worth - amount) <= Decimal("0.0051") * months


@given(AMOUNTS, TERMS)
def test_a_loan_without_interest_costs_what_it_lends(tools: ModuleType, amount: Decimal, months: int) -> None:
    assert tools.calculate_loan_payment(amount, 0, months).total_payment == amount
    assert tools.amortization_schedule(amount, 0, months).total_interest == 0


@given(st.lists(st.tuples(AMOUNTS, RATES, TERMS), min_size=2, max_size=5))
def test_the_cheapest_offer_is_the_one_with_the_lowest_total(
    tools: ModuleType, loans: list[tuple[Decimal, Decimal, int]]
) -> None:
    offers = [tools.LoanOffer(str(index), *loan) for index, loan in enumerate(loans)]
    found = tools.compare_loans(offers)
    totals = {quote.offer.name: quote.total_payment for quote in found.quotes}
    assert totals[found.cheapest] == min(totals.values())
    assert found.saving == max(totals.values()) - min(totals.values())


NONSENSE = st.sampled_from(["NaN", "-1", "Infinity", "1e400", "-1e400", "lots", "", float("nan"), float("inf"), -0.01])


@given(NONSENSE)
def test_nonsense_is_refused_in_words(tools: ModuleType, value: Any) -> None:
    calls: list[Callable[[], object]] = [
        lambda: tools.calculate_loan_payment(value, 0.05, 36),
        lambda: tools.calculate_loan_payment(1000, value, 36),
        lambda: tools.amortization_schedule(1000, 0.05, 0),
        lambda: tools.amortization_schedule(1000, 0.05, 601),
        lambda: tools.check_eligibility(700, value, 1000),
        lambda: tools.check_eligibility(299, 50_000, 1000),
        lambda: tools.assess_affordability(5000, value, 100),
        lambda: tools.assess_affordability(0, 0, 100),
        lambda: tools.compare_loans([]),
    ]
    for call in calls:
        with pytest.raises(tools.InvalidLoan):
            call()


@given(st.integers(min_value=1, max_value=9_999_999), st.integers(min_value=1, max_value=99))
def test_money_that_is_written_is_read_again(whole: int, hundredths: int) -> None:
    money, figures = load_file(EXAMPLE / "money.py"), load_file(EXAMPLE / "figures.py")
    amount = Decimal(whole) + Decimal(hundredths) / 100
    text = f"I want a {money.dollars(amount)} loan at 7.25% over 5 years"
    found = figures.read_figures(text)
    assert (found.loans, found.rates, found.terms) == ((amount,), (Decimal("0.0725"),), (60,))
    assert money.amounts_in(text) == {amount}


@pytest.mark.parametrize(
    ("text", "loans"),
    [
        ("50k", (50_000,)),
        ("$1.5 million", (1_500_000,)),
        ("20 thousand", (20_000,)),
        ("30000", (30_000,)),
        ("a score of 720", ()),
        ("36 months at 5%", ()),
        ("the 5 of us", ()),
    ],
)
def test_amounts_are_told_from_other_numbers(text: str, loans: tuple[int, ...]) -> None:
    assert load_file(EXAMPLE / "figures.py").read_figures(text).loans == loans


@given(st.text(), st.text())
def test_whatever_is_asked_there_is_an_answer(first: str, second: str) -> None:
    agent = load_file(EXAMPLE / "agent.py").agent
    state: dict[str, Any] = {}
    assert agent(f"{first} calculate {second}", state)
    assert agent(second, state)


NUMBERS = st.from_regex(r"\$?[0-9]{1,20}(,[0-9]{3}){0,3}(\.[0-9]{0,6})? ?(k|%|months|years|m|percent)?", fullmatch=True)
WORDS = st.sampled_from(
    "schedule compare afford payment eligible qualify income earn debts score a month year over at loan".split()
)


@given(st.lists(NUMBERS | WORDS, max_size=12))
def test_no_mixture_of_figures_and_words_breaks_the_agent(words: list[str]) -> None:
    assert load_file(EXAMPLE / "agent.py").agent(" ".join(words), {})
