"""Every form that constructors take. mypy and pyright, both strict, find nothing wrong here; it is also executed."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import proctor
from proctor import (
    ROUGE,
    Case,
    Contains,
    Evaluable,
    Evaluation,
    ExactMatch,
    Expected,
    ExpectedCall,
    Keywords,
    Suite,
    Turn,
    evaluator,
)


def agent(question: str) -> str:
    return f"Your order is shipped, {question}"


async def slow_agent(question: str) -> str:
    return question


def polite(e: Evaluable) -> bool:
    return "please" in str(e.output)


def brief(output: str) -> Evaluation:
    return Evaluation(min(1, 20 / len(output)), f"{len(output)} characters")


def close(output: str, expected: str) -> float:
    return 1 - abs(len(output) - len(expected)) / 100


async def asks(output: str) -> bool:
    return "?" in output


@evaluator(threshold=0.8, report_only=True)
def near(output: str, expected: str) -> float:
    return close(output, expected)


class Own:
    def __call__(self, evaluable: Evaluable, /) -> bool | None:
        return None


cases = [
    Case("Where is A-17?", "It is shipped."),
    Case("A list?", ["a", "b"], tags=("smoke",), evaluators=["ExactMatch"]),
    Case(
        "A-18 never came.",
        expected={
            "contains": {"all": ["sorry", "refund"]},
            "tools": [
                "find",
                {"name": "refund", "args": {"order": re.compile("A-[0-9]+"), "amount": lambda x: x <= 20, "n": int}},
                ExpectedCall("ping", {"any": ...}, count=2),
            ],
        },
        mocks={"refund": {"result": {"receipt": "R-1"}}, "find": [{"error": "down", "times": 1}, {"result": 1}]},
        metadata={"team": "shop"},
        state={"user": "u"},
        final_state={"paid": True},
    ),
    Case(
        id="talk",
        turns=[
            "Hi",
            {"input": "And now?", "expected": {"contains": "now"}},
            Turn("Bye", Expected(contains=["bye"], tools=[]), evaluators=[..., polite]),
        ],
    ),
    Case(scenario={"start": "Hello", "plan": "Ask for a refund."}, id="simulated", evaluators=[brief]),
    Case("Words", Expected(contains=Keywords(any=["a"]), tools=[{"name": "t"}]), repeat=2, timeout=3.5),
]
suite = Suite(
    "shop",
    [*cases, {"input": "As a mapping", "expected": {"output": None}}],
    agent=agent,
    evaluators=[
        polite,
        brief,
        close,
        asks,
        near,
        Own(),
        lambda output: "a" in output,
        lambda output, expected: output == expected,
        ROUGE(variant="rouge1", threshold=0.6),
        Contains(any=["a"], name="words", report_only=True),
        ExactMatch,
        "LevenshteinMatch",
        {"ExactMatch": {"report_only": True}},
        evaluator(polite, report_only=True),
        evaluator("ExactMatch", threshold=0.5),
    ],
    judge=lambda prompt: "{}",
    criteria={"trials": "majority"},
    settings={"repeat": 1, "parallel": 2},
)
changed: Suite = replace(suite, agent=slow_agent)
again: Suite = Suite.from_dict({"name": "s", "agent": agent, "cases": [{"input": "q", "expected": "x"}]})
arms = Suite("arms", [Case("1+1", "2")], arms={"old": agent, "new": lambda question: question})


def test_results() -> None:
    run = again.run(lambda question: "x", repeat=2, tag=None)
    assert run
    assert run.pass_rate.of == 1
    names: list[str] = [case.id for case in run.failed]
    means: Mapping[str, float] = run.means
    output: Any = run["q"].output
    assert (names, list(means), output) == ([], ["ExactMatch"], "x")
    proctor.expect(proctor.ask(agent, "q"), contains=["shipped"], tools=[])
    assert proctor.run([{"input": "q", "expected": "x"}], lambda question: "x")
