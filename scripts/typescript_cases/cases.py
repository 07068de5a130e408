"""Cases for the TypeScript agent next to this file, each with what ADK-TS's documentation says about it.

The documentation defines the files, the default criteria, `tool_trajectory_avg_score` (the calls of a turn, in order,
with their arguments; the mean over turns and runs), `response_match_score` (ROUGE-1, the mean) and `sessionInput`. By
it, each case must pass or must not. A case must not pass either if nothing can be said about the agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

TOOLS = {"tool_trajectory_avg_score": 1.0}
WORDS = {"response_match_score": 0.8}
DEFAULTS: dict[str, float] | None = None
"""No `test_config.json`: both criteria, 1.0 and 0.8."""

Call = tuple[str, dict[str, Any]]
LONDON: Call = ("get_weather", {"city": "London"})
TOKYO: Call = ("get_weather", {"city": "Tokyo"})
PARIS: Call = ("get_weather", {"city": "Paris"})
IN_LONDON = "The weather in London is sunny, 22°C."
IN_TOKYO = "The weather in Tokyo is cloudy, 18°C."
IN_PARIS = "The weather in Paris is rainy, 15°C."
ASK_LONDON = "What is the weather in London?"
HELLO = "Hello! How can I help you today?"


@dataclass(frozen=True, slots=True)
class Said:
    """One turn: what the user says, and what the file expects. `None` leaves a part out of the file."""

    text: str
    response: str | None = None
    calls: Sequence[Call] | None = None


@dataclass(frozen=True, slots=True)
class DocumentedCase:
    """A case, and whether it must pass."""

    id: str
    passes: bool
    turns: tuple[Said, ...]
    criteria: dict[str, float] | None = field(default_factory=lambda: dict(TOOLS | WORDS))
    runs: int = 1
    session: dict[str, Any] | None = None
    legacy: bool = False

    def to_json(self) -> dict[str, Any]:
        """The case as an EvalCase, or as a row of the legacy array."""
        if self.legacy:
            turn = self.turns[0]
            row: dict[str, Any] = {"query": turn.text}
            if turn.response is not None:
                row["reference"] = turn.response
            if turn.calls is not None:
                row["expected_tool_use"] = [{"name": name, "args": args} for name, args in turn.calls]
            return row
        case: dict[str, Any] = {"evalId": self.id, "conversation": [_invocation(turn) for turn in self.turns]}
        if self.session is not None:
            case["sessionInput"] = {"appName": "bank", "userId": "ann", "state": {}} | self.session
        return case


def _invocation(turn: Said) -> dict[str, Any]:
    data: dict[str, Any] = {"creationTimestamp": 0, "userContent": {"role": "user", "parts": [{"text": turn.text}]}}
    if turn.response is not None:
        data["finalResponse"] = {"role": "model", "parts": [{"text": turn.response}]}
    if turn.calls is not None:
        uses = [{"name": name, "args": args} for name, args in turn.calls]
        data["intermediateData"] = {"toolUses": uses, "intermediateResponses": []}
    return data


def documented_cases() -> list[DocumentedCase]:
    """All cases, each with its own id."""
    cases = [*_responses(), *_trajectories(), *_conversations(), *_sessions(), *_errors(), *_runs(), *_defaults()]
    cases = [*cases, *_legacy()]
    assert len({case.id for case in cases}) == len(cases)
    return cases


def _responses() -> Iterator[DocumentedCase]:
    def case(name: str, passes: bool, text: str, response: str, threshold: float = 0.8) -> DocumentedCase:
        return DocumentedCase(name, passes, (Said(text, response),), {"response_match_score": threshold})

    ten = "Say: one two three four five six seven eight nine ten"
    yield case("greeting", True, "Hello!", HELLO)
    yield case("greeting-wrong", False, "Hello!", "Goodbye and thanks for all the fish")
    yield case("same-words", True, ten, "one two three four five six seven eight nine ten")
    yield case("eight-of-ten", True, ten, "one two three four five six seven eight x y")
    yield case("seven-of-ten", False, ten, "one two three four five six seven x y z")
    yield case("seven-of-ten-lower-bar", True, ten, "one two three four five six seven x y z", 0.7)
    yield case("other-order", True, ten, "ten nine eight seven six five four three two one")
    yield case("other-case", True, "Say: Paris is LOVELY today", "paris is lovely today")
    yield case("punctuation", True, "Say: Yes, it is; really!", "Yes it is really")
    yield case("beginning-of-the-answer", False, ASK_LONDON, "The weather in London")
    yield case("beginning-of-the-answer-lower-bar", True, ASK_LONDON, "The weather in London", 0.6)
    yield case("half-right", False, "Say: the cat sat", "the dog ran")
    yield case("empty-answer", False, "Please be quiet.", "All right.")
    yield case("empty-answer-expected", True, "Please be quiet.", "")
    yield case("answer-instead-of-silence", False, "Hello!", "")
    yield case("other-script", True, "Say: 今天天气很好", "今天天气很好")
    yield case("other-script-wrong", False, "Say: 今天天气很好", "明日是星期一")
    yield case("accents", True, "Say: Un café à la crème, s'il vous plaît", "Un café à la crème, s'il vous plaît")
    yield case("several-lines", True, "Say: one\ntwo\nthree", "one two three")
    yield case("looks-like-json", True, 'Say: {"text": "hidden"}', '{"text": "hidden"}')
    yield case("looks-like-an-error", True, "Say: Error: none at all", "Error: none at all")
    yield case("long-answer", True, "Tell me a long story.", "word " * 2000)
    yield case("long-answer-wrong", False, "Tell me a long story.", "verb " * 2000)
    yield case("two-parts", True, "Answer in two parts.", "The weather is sunny", 1.0)
    yield case("thoughts-are-not-the-answer", True, "Please think first.", "I thought about it.", 1.0)
    yield case("thoughts-only-expected", False, "Please think first.", "They want an answer")
    yield case("prints-besides", True, "Please print something.", "I printed something.", 1.0)
    yield case("slow", True, "Hello, take your time.", HELLO)
    yield case("any-score", True, "Hello!", "Nothing of the kind", 0.0)


def _trajectories() -> Iterator[DocumentedCase]:
    def case(name: str, passes: bool, text: str, *calls: Call, threshold: float = 1.0) -> DocumentedCase:
        return DocumentedCase(name, passes, (Said(text, None, calls),), {"tool_trajectory_avg_score": threshold})

    search: Call = ("web_search", {"query": "TypeScript tutorials"})
    both = "What is the weather in London and Paris?"
    steps = "Search for trains, then look at London"
    options = {"units": "metric", "parts": ["wind", "rain"]}
    detailed = "Give me the detailed weather in London"
    yield case("one-call", True, ASK_LONDON, LONDON)
    yield case("search", True, "Search for TypeScript tutorials", search)
    yield case("other-argument", False, ASK_LONDON, PARIS)
    yield case("other-tool", False, ASK_LONDON, ("get_forecast", {"city": "London"}))
    yield case("call-missing", False, "Hello!", LONDON)
    yield case("call-not-expected", False, ASK_LONDON)
    yield case("no-call", True, "Hello!")
    yield case("parallel-calls", True, both, LONDON, PARIS)
    yield case("parallel-calls-other-order", False, both, PARIS, LONDON)
    yield case("parallel-calls-one-missing", False, both, LONDON)
    yield case("parallel-calls-one-too-many", False, both, LONDON, PARIS, TOKYO)
    yield case("calls-in-steps", True, steps, ("web_search", {"query": "trains"}), LONDON)
    yield case("calls-in-steps-other-order", False, steps, LONDON, ("web_search", {"query": "trains"}))
    yield case("calls-in-steps-first-only", False, steps, ("web_search", {"query": "trains"}))
    yield case("number", True, "The forecast for London for 3 days", ("get_weather", {"city": "London", "days": 3}))
    yield case(
        "number-as-text", False, "The forecast for London for 3 days", ("get_weather", {"city": "London", "days": "3"})
    )
    yield case("argument-missing", False, ASK_LONDON, ("get_weather", {}))
    yield case("argument-too-many", False, ASK_LONDON, ("get_weather", {"city": "London", "days": 1}))
    yield case("nested", True, detailed, ("get_weather", {"city": "London", "options": options}))
    yield case(
        "nested-other-order-of-keys",
        True,
        detailed,
        ("get_weather", {"options": dict(reversed(options.items())), "city": "London"}),
    )
    yield case(
        "nested-other-order-of-items",
        False,
        detailed,
        ("get_weather", {"city": "London", "options": options | {"parts": ["rain", "wind"]}}),
    )
    yield case("argument-in-another-script", True, "What is the weather in 北京?", ("get_weather", {"city": "北京"}))
    yield case("argument-other-case", False, ASK_LONDON, ("get_weather", {"city": "london"}))
    yield case(
        "repeated-calls",
        True,
        "Search for it forever",
        *[("web_search", {"query": q}) for q in ("it forever", *["again"] * 4)],
    )
    yield case("repeated-calls-too-few", False, "Search for it forever", ("web_search", {"query": "it forever"}))
    yield case(
        "call-that-fails-is-a-call", True, "What is the weather in Atlantis?", ("get_weather", {"city": "Atlantis"})
    )
    yield case("any-calls", True, ASK_LONDON, PARIS, threshold=0.0)


def _conversations() -> Iterator[DocumentedCase]:
    london, tokyo = Said(ASK_LONDON, IN_LONDON, (LONDON,)), Said("What about Tokyo?", IN_TOKYO, (TOKYO,))
    wrong = Said("What about Tokyo?", IN_TOKYO, (PARIS,))
    count = "How many messages did I send?"
    half = {"tool_trajectory_avg_score": 0.5}
    yield DocumentedCase("two-turns", True, (london, tokyo))
    yield DocumentedCase("two-turns-second-wrong", False, (london, wrong))
    yield DocumentedCase("two-turns-first-wrong", False, (Said(ASK_LONDON, IN_LONDON, (PARIS,)), tokyo))
    yield DocumentedCase("two-turns-mean-is-enough", True, (london, wrong), half)
    yield DocumentedCase(
        "two-turns-swapped-answers",
        False,
        (Said(ASK_LONDON, IN_TOKYO), Said("What about Tokyo?", IN_LONDON)),
        {"response_match_score": 0.9},
    )
    yield DocumentedCase("three-turns", True, (london, tokyo, Said("What about Paris?", IN_PARIS, (PARIS,))))
    yield DocumentedCase(
        "remembers-the-conversation",
        True,
        (Said("Hello!", HELLO), Said("Hello again!", HELLO), Said(count, "You sent me 3 messages.")),
        {"response_match_score": 1.0},
    )
    yield DocumentedCase(
        "remembers-too-much",
        False,
        (Said("Hello!", HELLO), Said(count, "You sent me 3 messages.")),
        {"response_match_score": 1.0},
    )
    yield DocumentedCase(
        "starts-afresh", True, (Said(count, "You sent me 1 messages."),), {"response_match_score": 1.0}
    )
    yield DocumentedCase(
        "twelve-turns",
        True,
        (Said("Hello!", HELLO),) * 11 + (Said(count, "You sent me 12 messages."),),
        {"response_match_score": 1.0},
    )
    yield DocumentedCase("tool-writes-state", True, (london, Said("Which city was it?", "We talked about London.", ())))
    yield DocumentedCase(
        "tool-writes-state-wrong",
        False,
        (london, Said("Which city was it?", "We talked about Paris.", ())),
        {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.9},
    )


def _sessions() -> Iterator[DocumentedCase]:
    def case(name: str, passes: bool, *turns: Said, **session: Any) -> DocumentedCase:
        return DocumentedCase(name, passes, turns, {"response_match_score": 1.0}, session=session)

    ask, look_up = "What is my account balance?", "Look up my balance"
    rich = {"account_balance": 1250, "account_type": "checking"}
    yield case("state-in-the-instruction", True, Said(ask, "Your account balance is $1,250."), state=rich)
    yield case("state-in-a-tool", True, Said(look_up, "Your account balance is $1,250."), state=rich)
    yield case("other-state", False, Said(look_up, "Your account balance is $1,250."), state={"account_balance": 7})
    yield case("no-state", False, Said(ask, "Your account balance is $1,250."))
    yield case("user-and-app", True, Said("Who am I?", "You are ann in bank."), state={})
    yield case("other-user", False, Said("Who am I?", "You are ann in bank."), userId="bob", state={})
    yield case("other-app", True, Said("Who am I?", "You are ann in shop."), appName="shop", state={})
    yield case(
        "state-changes",
        True,
        Said("Transfer 250 to Bob", "Done, $1,000 left."),
        Said(look_up, "Your account balance is $1,000."),
        state=rich,
    )
    yield case(
        "state-is-not-shared", True, Said(look_up, "Your account balance is $99."), state={"account_balance": 99}
    )


def _errors() -> Iterator[DocumentedCase]:
    transfer: Call = ("transfer", {"amount": 5000, "to": "Bob"})
    poor = {"state": {"account_balance": 10}}
    words = {"response_match_score": 0.0}
    yield DocumentedCase(
        "tool-error-handled",
        True,
        (Said("Transfer 5000 to Bob", "That did not work: insufficient funds.", (transfer,)),),
        session=poor,
    )
    yield DocumentedCase(
        "tool-error-not-expected", False, (Said("Transfer 5000 to Bob", "Done, $5 left.", (transfer,)),), session=poor
    )
    yield DocumentedCase(
        "station-missing",
        True,
        (Said("What is the weather in Atlantis?", "That did not work: no station in Atlantis."),),
        WORDS,
    )
    yield DocumentedCase(
        "tool-does-not-exist",
        False,
        (Said("Use no such tool.", "Error: Function nonexistent is not found in the tools_dict."),),
        words,
    )
    yield DocumentedCase(
        "connection-lost", False, (Said("Please lose the connection.", "Error: connect ECONNREFUSED"),), words
    )
    yield DocumentedCase("quota-used-up", False, (Said("Please run out of quota.", "Error: quota exceeded"),), words)
    yield DocumentedCase(
        "error-after-a-good-turn", False, (Said("Hello!", HELLO), Said("Please run out of quota.", HELLO)), words
    )


def _runs() -> Iterator[DocumentedCase]:
    coin = (Said("Toss a coin.", None, ()),)
    yield DocumentedCase("always-right", True, (Said(ASK_LONDON, IN_LONDON, (LONDON,)),), runs=2)
    yield DocumentedCase("always-wrong", False, (Said(ASK_LONDON, IN_TOKYO, (TOKYO,)),), runs=2)
    yield DocumentedCase("half-of-the-runs", False, coin, TOOLS, runs=2)
    yield DocumentedCase("half-of-the-runs-is-enough", True, coin, {"tool_trajectory_avg_score": 0.5}, runs=4)
    yield DocumentedCase("half-of-the-runs-is-not-enough", False, coin, {"tool_trajectory_avg_score": 0.6}, runs=6)
    yield DocumentedCase(
        "each-run-starts-afresh",
        True,
        (Said("How many messages did I send?", "You sent me 1 messages."),),
        {"response_match_score": 1.0},
        runs=3,
    )


def _defaults() -> Iterator[DocumentedCase]:
    def case(name: str, passes: bool, turn: Said) -> DocumentedCase:
        return DocumentedCase(name, passes, (turn,), DEFAULTS)

    yield case("defaults", True, Said(ASK_LONDON, IN_LONDON, (LONDON,)))
    yield case("defaults-words-wrong", False, Said(ASK_LONDON, "No idea", (LONDON,)))
    yield case("defaults-calls-wrong", False, Said(ASK_LONDON, IN_LONDON, (TOKYO,)))


def _legacy() -> Iterator[DocumentedCase]:
    def case(name: str, passes: bool, turn: Said) -> DocumentedCase:
        return DocumentedCase(name, passes, (turn,), DEFAULTS, legacy=True)

    yield case("legacy", True, Said(ASK_LONDON, IN_LONDON, (LONDON,)))
    yield case("legacy-calls-wrong", False, Said(ASK_LONDON, IN_LONDON, (PARIS,)))
    yield case("legacy-words-wrong", False, Said(ASK_LONDON, "Nothing", (LONDON,)))
    yield case("legacy-no-calls", True, Said("Hello!", HELLO, ()))
    yield case("legacy-missing-call", False, Said("Hello!", HELLO, (LONDON,)))
