"""Cases for a real google-adk agent with a scripted model: what it says and calls, what is expected, the criteria."""

from __future__ import annotations

import itertools
from typing import Any

Step = list[Any]
"""The parts of one answer of the model; see `drivers/adk_agents.py`."""

LONDON = {"city": "London"}
RATE = {"name": "get_rate", "args": LONDON}
BOOK = {"name": "book", "args": {"city": "London", "nights": 2}}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"call": name, "args": arguments}


def content(role: str, *texts: Any) -> dict[str, Any]:
    parts = [text if isinstance(text, dict) else {"text": text} for text in texts]
    return {"role": role, "parts": parts}


class Cases:
    """Collects cases by name."""

    def __init__(self) -> None:
        self.cases: dict[str, dict[str, Any]] = {}
        self.documented: dict[str, str] = {}
        """The row of the page for each case in which the tools differ on purpose."""

    def add(
        self,
        name: str,
        *turns: tuple[list[Step] | dict[str, list[Step]], Any, Any],
        criteria: Any = None,
        row: str = "",
        **more: Any,
    ) -> None:
        """Add a case. A turn is the script of the model, the expected response, and the expected calls.

        `None` for the response or the calls leaves them out. `more` are keys of the case, or `agent`, `config`,
        `eval_set` (keys of the set) and `num_runs`.
        """
        scripts: dict[str, Any] = {}
        conversation = []
        for number, (script, response, uses) in enumerate(turns, 1):
            text = f"{name}, message {number}"
            scripts[text] = script
            turn: dict[str, Any] = {"user_content": content("user", text)}
            if response is not None:
                turn["final_response"] = response if isinstance(response, dict) else content("model", response)
            if uses is not None:
                turn["intermediate_data"] = uses if isinstance(uses, dict) else {"tool_uses": uses}
            conversation.append(turn)
        own = {key: more.pop(key) for key in ("agent", "num_runs", "agent_name", "files") if key in more}
        config = more.pop("config", None if criteria is None else {"criteria": criteria})
        extra = more.pop("eval_set", {})
        eval_case = {"eval_id": "case", "conversation": conversation, **more}
        eval_set = {"eval_set_id": "peers", "eval_cases": [eval_case], **extra}
        self.put(name, row, data=eval_set, config=config, scripts=scripts, **own)

    def put(self, name: str, row: str = "", **case: Any) -> None:
        """Add a case with whole files."""
        assert name not in self.cases, name
        self.cases[name] = {"agent": "desk", "num_runs": 1, "config": None, "scripts": {}, "files": {}, **case}
        if row:
            self.documented[name] = row


def all_cases() -> Cases:
    cases = Cases()
    for add in (_answers, _parts, _trajectories, _conversations, _structures, _files, _configs):
        add(cases)
    return cases


MATCH = {"response_match_score": 0.8}
TOOLS = {"tool_trajectory_avg_score": 1.0}


def _answers(cases: Cases) -> None:
    pairs = {
        "the same words": ("The weather in London is sunny.", "The weather in London is sunny."),
        "another order": ("sunny is London in weather the", "The weather in London is sunny."),
        "other words": ("I do not know.", "The weather in London is sunny."),
        "some words": ("The weather in London is rainy.", "The weather in London is sunny."),
        "stems": ("running dogs barked", "run dog bark"),
        "repeated words": ("the the the cat", "the cat"),
        "punctuation and case": ("THE WEATHER, in London: is (sunny)!", "the weather in london is sunny"),
        "an apostrophe": ("I don't know", "I dont know"),
        "accents": ("Café crème brûlée", "Cafe creme brulee"),
        "numbers": ("It costs 12.50 euros", "It costs 12 50 euros"),
        "Thai": ("สวัสดีครับ", "สวัสดีค่ะ"),
        "Chinese": ("今天天气很好", "今天天气不好"),
        "Cyrillic": ("Сегодня солнечно", "Сегодня солнечно и тепло"),
        "emoji": ("It is ☀️ today", "It is sunny today"),
        "full width": ("Ｌｏｎｄｏｎ １２", "London 12"),
        "lines": ("one\ntwo\n\nthree", "one two three"),
        "long texts": ("word " * 300, "word " * 250 + "other " * 50),
    }
    for name, (answer, expected) in pairs.items():
        cases.add(f"answer: {name}", ([[answer]], expected, None), criteria=MATCH)
    cases.add("answer: at the threshold", ([["a b c d"]], "a b c e", None), criteria={"response_match_score": 0.75})
    cases.add("answer: defaults", ([["Hello there"]], "Hello there", []))
    cases.add("answer: defaults, wrong", ([["Bye"]], "Hello there", []))
    cases.add("answer: nothing is said", ([[""]], "Hello", None), criteria=MATCH)
    missing = "a missing reference"
    cases.add("answer: no reference", ([["Hello"]], None, []), criteria=MATCH | TOOLS, row=missing)


def _parts(cases: Cases) -> None:
    cases.add("parts: two texts", ([["The weather", "is sunny"]], "The weather is sunny", None), criteria=MATCH)
    cases.add("parts: a word in two parts", ([["The wea", "ther"]], "The weather", None), criteria=MATCH)
    cases.add("parts: empty ones", ([["The weather", "", "is sunny"]], "The weather is sunny", None), criteria=MATCH)
    expected = content("model", "The weather", "is sunny")
    cases.add("parts: two expected texts", ([["The weather is sunny"]], expected, None), criteria=MATCH)
    before = [["Let me see.", call("get_rate", **LONDON)], ["It is sunny."]]
    cases.add("parts: text before a call", (before, "It is sunny.", [RATE]), criteria=MATCH | TOOLS)
    thoughts = "thoughts in `response_match_score`"
    thought = [[{"thought": "The user wants to know the weather in London"}, "Sunny."]]
    cases.add("parts: a thought", (thought, "Sunny.", None), criteria=MATCH, row=thoughts)
    expected = content("model", {"text": "They ask for the weather", "thought": True}, "Sunny.")
    cases.add("parts: an expected thought", ([["Sunny."]], expected, None), criteria=MATCH, row=thoughts)
    criteria = {"response_match_score": {"threshold": 0.8, "thoughts": True}}
    cases.add("parts: a thought that counts", (thought, "Sunny.", None), criteria=criteria)
    cases.add("parts: an expected thought that counts", ([["Sunny."]], expected, None), criteria=criteria)


def trajectory(match_type: str, *, ignore_args: bool = False) -> dict[str, Any]:
    criterion = {"threshold": 1.0, "match_type": match_type, "ignore_args": ignore_args}
    return {"tool_trajectory_avg_score": criterion}


def _trajectories(cases: Cases) -> None:
    rate, book = call("get_rate", **LONDON), call("book", city="London", nights=2)
    actual = {
        "as expected": [[rate], [book], ["Done."]],
        "at once": [[rate, book], ["Done."]],
        "reversed": [[book], [rate], ["Done."]],
        "one missing": [[rate], ["Done."]],
        "one more": [[rate], [call("get_rate", city="Rome")], [book], ["Done."]],
        "twice": [[rate], [rate], [book], ["Done."]],
        "wrong arguments": [[rate], [call("book", city="London", nights=3)], ["Done."]],
        "none": [["Done."]],
    }
    for match_type, (name, script) in itertools.product(("EXACT", "IN_ORDER", "ANY_ORDER"), actual.items()):
        cases.add(f"calls: {match_type}, {name}", (script, None, [RATE, BOOK]), criteria=trajectory(match_type))
    for match_type in ("EXACT", "IN_ORDER", "ANY_ORDER"):
        name = f"calls: {match_type}, arguments ignored"
        script = actual["wrong arguments"]
        cases.add(name, (script, None, [RATE, BOOK]), criteria=trajectory(match_type, ignore_args=True))
        one, none = [[rate], ["Done."]], [["Done."]]
        cases.add(f"calls: {match_type}, [] and a call", (one, None, []), criteria=trajectory(match_type))
        cases.add(f"calls: {match_type}, [] and no call", (none, None, []), criteria=trajectory(match_type))
    exact = trajectory("EXACT")
    values = {
        "a whole number as a decimal": (2.0, 2, ""),
        "text and number": ("2", 2, ""),
        "null": (None, None, ""),
        "lists": ([1, 2], [1, 2], ""),
        "lists in another order": ([2, 1], [1, 2], ""),
        "objects in another order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, ""),
        "true and 1": (True, 1, "`true` and 1 in arguments"),
    }
    for name, (value, expected, row) in values.items():
        use = {"name": "book", "args": {"city": "London", "options": expected}}
        script = [[call("book", city="London", options=value)], ["Done."]]
        cases.add(f"arguments: {name}", (script, None, [use]), criteria=exact, row=row)
    cases.add(
        "arguments: an argument too many", ([[book], ["Done."]], None, [{**BOOK, "args": LONDON}]), criteria=exact
    )
    with_id = [{**RATE, "id": "call-1"}]
    cases.add("arguments: ids do not count", ([[rate], ["Done."]], None, with_id), criteria=exact)
    event = {"author": "desk", "content": {"role": "model", "parts": [{"function_call": RATE}]}}
    recorded = {"invocation_events": [event]}
    cases.add("calls: recorded events", ([[rate], ["Done."]], None, recorded), criteria=exact)
    row = "a missing reference"
    cases.add("calls: no expectation", ([[rate], ["Done."]], "Done.", None), criteria=MATCH | exact, row=row)


def _conversations(cases: Cases) -> None:
    rate = call("get_rate", **LONDON)
    good, bad = ([[rate], ["Sunny."]], "Sunny.", [RATE]), ([["No idea."]], "Sunny.", [RATE])
    for threshold, name in ((1.0, "all"), (0.5, "half")):
        criteria = {"tool_trajectory_avg_score": threshold, "response_match_score": threshold}
        cases.add(f"turns: two, {name} needed", good, good, criteria=criteria)
        cases.add(f"turns: one of two, {name} needed", good, bad, criteria=criteria)
        cases.add(f"turns: none of two, {name} needed", bad, bad, criteria=criteria)
    cases.add("turns: three runs", good, good, criteria=MATCH | TOOLS, num_runs=3)
    cases.add("turns: three runs, one turn wrong", good, bad, criteria=MATCH | TOOLS, num_runs=3)
    session = {"app_name": "desk", "user_id": "ann", "state": {"customer": "Ann"}}
    asked = ([[call("remember", key="city", value="London")], ["Noted."]], "Noted.", None)
    cases.add("state: a session", asked, asked, criteria=MATCH, session_input=session)
    state = {"customer": "Ann", "city": "Rome"}
    row = "`finalSessionState`"
    cases.add(
        "state: another at the end", asked, criteria=MATCH, session_input=session, final_session_state=state, row=row
    )
    state = {"customer": "Ann", "city": "London"}
    cases.add("state: as expected", asked, criteria=MATCH, session_input=session, final_session_state=state)


def _structures(cases: Cases) -> None:
    rate = call("get_rate", **LONDON)
    exact = trajectory("EXACT")
    helper = {"name": "helper", "args": {"request": "tools: the inner request"}}
    scripts = {"tools: the inner request": [[rate], ["Sunny."]]}
    script = [[call("helper", request="tools: the inner request")], ["Sunny."]]
    for name, uses in (("outer", [helper]), ("outer and inner", [helper, RATE]), ("inner", [RATE])):
        cases.add(f"agent as a tool: {name} calls expected", (script, None, uses), criteria=exact)
        cases.cases[f"agent as a tool: {name} calls expected"]["scripts"] |= scripts
    transfer = {"name": "transfer_to_agent", "args": {"agent_name": "billing"}}
    moved = {"desk": [[call("transfer_to_agent", agent_name="billing")]], "billing": [[rate], ["Sunny."]]}
    for name, uses in (("all", [transfer, RATE]), ("without the transfer", [RATE])):
        cases.add(f"transfer: {name} calls expected", (moved, "Sunny.", uses), criteria=exact | MATCH)
    both = {"first": [[rate], ["One."]], "second": [["Sunny."]]}
    cases.add("workflow: the last answer", (both, "Sunny.", [RATE]), criteria=exact | MATCH, agent="flow")
    cases.add("workflow: the first answer", (both, "One.", [RATE]), criteria=exact | MATCH, agent="flow")
    nested = {"first": [[rate], ["One."]], "second": [[rate], ["Sunny."]]}
    cases.add("workflow: nested", (nested, "Sunny.", [RATE, RATE]), criteria=exact | MATCH, agent="nested")
    cases.add("workflow: a loop", ({"first": [["Sunny."]]}, "Sunny.", []), agent="loop")
    cases.add("callbacks: the agent is skipped", ([["Sunny."]], "Closed today.", []), agent="closed")
    data = '{"city": "London", "degrees": 20.0}'
    for name, expected in (
        ("the same", data),
        ("other spaces", data.replace(" ", "")),
        ("other values", '{"city": "Rome"}'),
    ):
        cases.add(f"data: {name}", ([[data]], expected, []), agent="data")
    cases.add(
        "data: in two parts",
        ([['{"city": "Lon', 'don", "degrees": 20.0}']], data, []),
        agent="data",
        row="data in several parts",
    )
    cases.add("turns: five", *[([[rate], [f"Sunny {number}."]], "Sunny.", [RATE]) for number in range(5)])
    cached = [[call("refuse", city="London")], ["Sunny."]]
    refuse = {"name": "refuse", "args": LONDON}
    cases.add("app: a plugin answers", (cached, "Sunny.", [refuse]), criteria=exact | MATCH, agent="app")
    cases.add("module: get_agent_async", ([["Sunny."]], "Sunny.", []), agent="factory")
    cases.add("module: a sub-agent by name", ({"billing": [["Sunny."]]}, "Sunny.", []), agent_name="billing")
    cases.add("module: no such sub-agent", ([["Sunny."]], "Sunny.", []), agent_name="nobody")
    failing = {"name": "fail", "args": LONDON}
    cases.add("failures: a tool raises", ([[call("fail", city="London")], ["Sunny."]], "Sunny.", [failing]))
    cases.add("failures: a tool returns an error", ([[call("refuse", city="London")], ["Sunny."]], "Sunny.", [refuse]))
    unknown = {"name": "nothing", "args": {}}
    cases.add("failures: an unknown tool", ([[call("nothing")], ["Sunny."]], "Sunny.", [unknown]))
    cases.add("failures: no script", ({"nobody": []}, "Sunny.", []))


def _files(cases: Cases) -> None:
    good = ([["Hello there"]], "Hello there", [])
    cases.put("files: no cases", data={"eval_set_id": "peers", "eval_cases": []})
    cases.put("files: not JSON", data="{")
    cases.put("files: a list of numbers", data=[1, 2])
    cases.add("files: an unknown key of a set", good, eval_set={"owner": "me"})
    cases.add("files: an unknown key of a case", good, owner="me")
    script = [[call("get_rate", **LONDON)], ["Sunny."]]
    python = [{"tool_name": "get_rate", "tool_input": LONDON}]

    def row(query: str, uses: Any = python, reference: str = "Sunny.") -> dict[str, Any]:
        return {"query": query, "expected_tool_use": uses, "reference": reference}

    cases.put("legacy: a row", data=[row("row 1")], scripts={"row 1": script})
    cases.put("legacy: wrong calls", data=[row("row 2")], scripts={"row 2": [["Sunny."]]})
    talk = [row("row 3"), row("row 4", [], "Bye.")]
    cases.put("legacy: two rows", data=talk, scripts={"row 3": script, "row 4": [["Bye."]]})
    typescript = "files of ADK for TypeScript"
    cases.put("legacy: name and args", typescript, data=[row("row 5", [RATE])], scripts={"row 5": script})
    for name, query, top in (
        ("files: camelCase", "camel 1", ("evalSetId", "evalCases")),
        ("files: camelCase inside", "camel 2", ("eval_set_id", "eval_cases")),
    ):
        user, model = content("user", query), content("model", "Sunny.")
        turn = {"userContent": user, "finalResponse": model, "intermediateData": {"toolUses": [RATE]}}
        data = {top[0]: "peers", top[1]: [{"evalId": "case", "conversation": [turn]}]}
        cases.put(name, typescript if top[0] == "evalSetId" else "", data=data, scripts={query: script})


METRICS = """
from google.adk.evaluation.eval_metrics import EvalMetric
from google.adk.evaluation.evaluator import EvalStatus, EvaluationResult, PerInvocationResult

def result(score, actual, status=None):
    status = status or (EvalStatus.PASSED if score >= 0.5 else EvalStatus.FAILED)
    return EvaluationResult(
        overall_score=score, overall_eval_status=status,
        per_invocation_results=[
            PerInvocationResult(actual_invocation=item, score=score, eval_status=status) for item in actual
        ],
    )

def short(metric: EvalMetric, actual, expected, scenario=None):
    return result(float(len(actual[0].final_response.parts[0].text) <= metric.criterion.limit), actual)

async def called(metric, actual, expected, scenario=None):
    return result(float(len(actual[0].intermediate_data.tool_uses if hasattr(actual[0].intermediate_data, "tool_uses")
                        else [e for e in actual[0].intermediate_data.invocation_events
                              if e.content and e.content.parts[0].function_call]) == 1), actual)

def broken(metric, actual, expected, scenario=None):
    raise RuntimeError("no license")
"""


def _configs(cases: Cases) -> None:
    mistake = "a mistake in `test_config.json`"
    good = ([[call("get_rate", **LONDON)], ["Sunny."]], "Sunny.", [RATE])
    cases.add("config: an unknown metric", good, criteria={"response_mach_score": 0.5}, row=mistake)
    cases.add("config: a threshold that is text", good, criteria={"response_match_score": "high"})
    counted = MATCH | {"tool_call_count_v1": 3}
    cases.add("config: efficiency metrics with a threshold", good, criteria=counted, row=mistake)
    both = {"criteria": MATCH | TOOLS, "evaluators": ["tool_call_count_v1", {"ToolCount": {"at_most": 3}}]}
    cases.add("config: for both tools", good, config=both)
    cases.add("config: not JSON", good, config="{")
    cases.add("config: no criteria", good, config={"criteria": {}}, row="a config without criteria")
    rubrics = {"rubric_based_final_response_quality_v1": {"threshold": 0.5}}
    cases.add("config: rubrics without any", good, criteria=MATCH | rubrics, row=mistake)
    for name, limit in (("short", 10), ("short", 3), ("called", 0), ("broken", 0)):
        config = {
            "criteria": {name: {"threshold": 0.5, "limit": limit}},
            "custom_metrics": {name: {"code_config": {"name": f"peer_metrics.{name}"}}},
        }
        title = f"metrics: {name} {limit}" if limit else f"metrics: {name}"
        cases.add(title, good, config=config, files={"peer_metrics.py": METRICS})
    nowhere = {"criteria": {"mine": 0.5}, "custom_metrics": {"mine": {"code_config": {"name": "nowhere.mine"}}}}
    cases.add("metrics: not found", good, config=nowhere, row=mistake)
