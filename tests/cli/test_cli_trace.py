"""`proctor trace` and `proctor trace to-case`: made, listed, shown, taken out, brought in, and turned into an entry."""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from otlp_documents import to_otlp

from proctor.results.store.store import Store
from proctor.tracing.otlp import read_trace_file
from proctor.tracing.spans import LLMSpan, ObserveSpan, UserMessage

Command = Callable[..., Any]

APP = """
import proctor
from pydantic import BaseModel


class Args(BaseModel):
    question: str
    polite: bool = False


@proctor.tool
def look_up(city):
    return "sunny"


class App:
    @classmethod
    def create(cls):
        return cls()

    async def run(self, args: Args):
        profile = proctor.wrap({"tier": "gold"}, purpose="input", name="profile")
        if args.question == "raise":
            raise KeyError("no such city")
        if args.question == "exit":
            raise SystemExit(3)
        weather = look_up(city="Oslo")
        proctor.wrap({"looked": True}, purpose="state", name="seen")
        proctor.wrap(f"It is {weather}.", purpose="output", name="answer")


def function(question):
    print("the application prints")
    return f"about {question}"


def twice(question):
    proctor.wrap(1, purpose="input", name="n")
    proctor.wrap(2, purpose="input", name="n")
    return question


def agent(question):
    with proctor.start_observation(input=question, name="plan"):
        look_up(city=question)
    return "It is sunny."


def fails(question):
    with proctor.start_observation(input=question, name="plan"):
        raise ValueError("planless")
"""
SUITE = """
agent: app.py:agent
cases:
  - {id: oslo, input: Oslo, expected: It is sunny.}
  - {id: rome, input: Rome, expected: It is sunny.}
"""


@pytest.fixture
def app(project: Path) -> Path:
    (project / "app.py").write_text(APP, encoding="utf-8")
    (project / "kwargs.json").write_text('{"question": "How is Oslo?"}', encoding="utf-8")
    (project / "suite.yaml").write_text(SUITE, encoding="utf-8")
    return project


def rows(proctor: Command, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(proctor("trace", "list", "--json", *options).out)
    return found


@pytest.mark.needs("pixie")
def test_an_application_is_run_once_and_its_trace_is_kept_and_written(proctor: Command, app: Path) -> None:
    ended = proctor("trace", "--runnable", "app.py:App", "--input", "kwargs.json", "--output", "out/trace.jsonl")
    assert ended.code == 0, ended
    [row] = rows(proctor)
    assert ended.out == f"stored trace {row['id']} (5 spans), written to out/trace.jsonl\n"
    records = [json.loads(line) for line in (app / "out/trace.jsonl").read_text().splitlines()]
    assert [(r["type"], r.get("name"), r.get("purpose"), r.get("data", r.get("value"))) for r in records] == [
        ("kwargs", None, None, {"question": "How is Oslo?"}),
        ("wrap", "profile", "input", {"tier": "gold"}),
        ("wrap", "seen", "state", {"looked": True}),
        ("wrap", "answer", "output", "It is sunny."),
    ]
    shown = proctor("trace", "last").out
    assert "run [" in shown and "\n  tool look_up [" in shown and "tools: look_up (1)" in shown
    assert shown == proctor("trace", "show", row["id"][:5]).out


@pytest.mark.parametrize(
    ("question", "said"), [("raise", "raised KeyError: 'no such city'"), ("exit", "raised SystemExit: 3")]
)
def test_an_application_that_raises_leaves_its_trace(proctor: Command, app: Path, question: str, said: str) -> None:
    (app / "kwargs.json").write_text(json.dumps({"question": question}))
    ended = proctor("trace", "--runnable", "app.py:App", "--input", "kwargs.json", "--output", "t.jsonl")
    assert (ended.code, said in ended.err) == (1, True)
    [row] = rows(proctor, "--errors")
    assert said in row["info"]["problem"]
    assert "profile" in (app / "t.jsonl").read_text()
    assert said in proctor("trace", "last").out


def test_a_plain_function_is_run_too_and_a_program_can_read_what_came_of_it(
    proctor: Command, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"question": "x"}'))
    ended = proctor("trace", "--runnable", "app.py:function", "--input", "-", "--json")
    assert (ended.code, json.loads(ended.out)["problem"], "the application prints" in ended.err) == (0, None, True)
    [span] = json.loads(proctor("trace", "last", "--json").out)["spans"]
    assert (span["name"], span["input"], span["output"]) == ("run", {"question": "x"}, "about x")


@pytest.mark.parametrize(
    ("content", "runnable", "said"),
    [
        (None, "app.py:App", "cannot read --input"),
        ("{", "app.py:App", "is not valid JSON"),
        ("[" * 100_000, "app.py:App", "is not valid JSON"),
        ("[1]", "app.py:App", "must be a JSON object"),
        (b"\xff\xfe", "app.py:App", "is not valid JSON"),
        ('{"nothing": 1}', "app.py:App", "question: Field required"),
        ('{"question": "x"}', "app.py:Ap", "did you mean 'App'"),
        ('{"question": "x"}', "gone.py:App", "no file 'gone.py'"),
        ('{"question": "x"}', "app.py", "is not an agent"),
    ],
)
def test_what_cannot_be_run_is_refused_and_leaves_nothing(
    proctor: Command, app: Path, content: Any, runnable: str, said: str
) -> None:
    path = app / "bad.json"
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    ended = proctor("trace", "--runnable", runnable, "--input", "bad.json")
    assert (ended.code, said in ended.err) == (2, True), ended
    assert proctor("trace", "list").out in ("", "no traces in .proctor\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "missing command"),
        (("--runnable", "app.py:App"), "missing command"),
        (("--runnable", "app.py:App", "list"), "put options after the command"),
        (("show",), "Missing argument"),
        (("export", "-o", " "), "-o must name a file"),
        (("import",), "Missing argument"),
        (("--runnable", "app.py:App", "--input", "kwargs.json", "--output", ""), "--output must name a file"),
    ],
)
def test_a_command_that_makes_no_sense_is_a_usage_error(
    proctor: Command, app: Path, arguments: tuple[str, ...], said: str
) -> None:
    ended = proctor("trace", *arguments)
    assert (ended.code, said in ended.err) == (2, True), ended


def test_without_a_store_there_is_nothing_to_show(proctor: Command, app: Path) -> None:
    assert proctor("trace", "list").code == 2
    assert proctor("trace", "last").code == 2
    proctor("test", "suite.yaml", "--agent", "agents.py:echo")
    assert proctor("trace", "list").out == "no traces in .proctor\n"
    assert "it has no traces" in proctor("trace", "last").err
    assert proctor("trace", "show", "nope").code == 2


def test_the_traces_of_trials_are_listed_with_their_case(proctor: Command, app: Path) -> None:
    proctor("test", "suite.yaml", "--repeat", "2")
    assert sorted(row["title"] for row in rows(proctor)) == [
        "suite/oslo",
        "suite/oslo #2",
        "suite/rome",
        "suite/rome #2",
    ]
    assert len(rows(proctor, "--limit", "3")) == 3
    assert rows(proctor, "--errors") == []
    proctor("test", "suite.yaml", "--agent", "app.py:fails")
    assert len(rows(proctor, "--errors")) == 2
    assert ", 1 failed  suite/" in proctor("trace", "list", "--errors").out


def test_an_exported_run_is_otlp_and_can_be_imported_elsewhere(proctor: Command, app: Path) -> None:
    proctor("test", "suite.yaml")
    ended = proctor("trace", "export", "last", "--output", "deep/run.json")
    assert (ended.code, "wrote 2 traces" in ended.err) == (0, True)
    document = json.loads((app / "deep/run.json").read_text())
    assert len(document["resourceSpans"]) == 2
    [first, second] = read_trace_file(app / "deep/run.json")
    assert (first.trial["suite"], first.trial["case"], second.trial["number"]) == ("suite", "oslo", 1)
    assert [span.name for span in first.spans] == ["plan", "look_up"]
    assert json.loads(proctor("trace", "export").out) == document

    assert proctor("trace", "import", "deep/run.json").out == "imported 0 traces; 2 already stored\n"
    elsewhere = ("--store", "elsewhere")
    assert proctor("trace", "import", "deep/run.json", *elsewhere).out == "imported 2 traces\n"
    assert proctor("trace", "import", "deep/run.json", *elsewhere).out == "imported 0 traces; 2 already stored\n"
    assert sorted(row["title"] for row in rows(proctor, *elsewhere)) == ["suite/oslo", "suite/rome"]
    assert {row["id"] for row in rows(proctor, *elsewhere)} == {row["id"] for row in rows(proctor)}


def test_a_run_without_traces_is_an_empty_document(proctor: Command, app: Path) -> None:
    proctor("test", "suite.yaml", "--agent", "agents.py:echo")
    ended = proctor("trace", "export")
    assert (ended.code, json.loads(ended.out)) == (0, {"resourceSpans": []})
    assert "wrote 0 traces" in ended.err
    assert proctor("trace", "export", "nope").code == 2


@pytest.mark.needs("pixie")
def test_files_of_all_kinds_are_imported_and_if_one_is_broken_none(proctor: Command, app: Path) -> None:
    call = LLMSpan("1" * 16, "a" * 32, None, 1.0, 2.0, 1000.0, input_tokens=3, output_tokens=4)
    (app / "one.json.gz").write_bytes(gzip.compress(json.dumps(to_otlp([call])).encode()))
    (app / "pixie.jsonl").write_text('{"type": "kwargs", "value": {"q": 1}}\n{"type": "llm_span"}\n')
    (app / "broken.json").write_text("{")
    ended = proctor("trace", "import", "one.json.gz", "broken.json", "gone.json")
    assert (ended.code, "broken.json:1: is not valid JSON" in ended.err, "gone.json" in ended.err) == (2, True, True)
    assert json.loads(proctor("trace", "import", "--json", "one.json.gz", "pixie.jsonl").out)["imported"] == 2
    assert "1 model call with 3 tokens in, 4 out" in proctor("trace", "show", "aaaa").out


def test_texts_are_whole_only_if_asked_for(proctor: Command, app: Path) -> None:
    store = Store(app / ".proctor")
    store.traces.add([ObserveSpan("1", "2", name="long", input="x" * 1000 + "end\x1b[2J")], {"file": "f"})
    store.close()
    assert "end" not in proctor("trace", "last").out
    whole = proctor("trace", "last", "-v").out
    assert "end\\x1b[2J" in whole and "\x1b" not in whole


def entry(ended: Any) -> dict[str, Any]:
    assert ended.code == 0, ended
    made: dict[str, Any] = json.loads(ended.out)
    return made


@pytest.mark.needs("pixie")
def test_a_trace_becomes_an_entry_whose_expectation_a_person_has_yet_to_say(proctor: Command, app: Path) -> None:
    proctor("trace", "--runnable", "app.py:App", "--input", "kwargs.json", "--output", "t.jsonl")
    ended = proctor("trace", "to-case", "--input", "t.jsonl")
    assert entry(ended) == {
        "entry_kwargs": {"question": "How is Oslo?"},
        "description": "How is Oslo?",
        "eval_input": [{"name": "profile", "value": {"tier": "gold"}}],
        "x-pixie": {
            "eval_output": [{"name": "seen", "value": {"looked": True}}, {"name": "answer", "value": "It is sunny."}]
        },
    }
    assert "'expectation'" in ended.err
    assert entry(proctor("trace", "to-case")) == entry(ended)
    [row] = rows(proctor)
    assert entry(proctor("trace", "to-case", "--trace", row["id"])) == entry(ended)


@pytest.mark.needs("pixie")
def test_a_formatted_entry_is_one_that_a_dataset_takes(proctor: Command, app: Path) -> None:
    proctor("trace", "--runnable", "app.py:App", "--input", "kwargs.json")
    assert proctor("trace", "to-case", "--output", "made/entry.json").code == 0
    made = json.loads((app / "made/entry.json").read_text())
    evaluators = [{"ExactMatch": {"output": "answer"}}]
    whole = {"runnable": "app.py:App", "evaluators": evaluators, "entries": [{**made, "expectation": "It is sunny."}]}
    (app / "dataset.json").write_text(json.dumps(whole))
    assert proctor("dataset", "validate", "dataset.json").out == "dataset.json: ok (pixie, 1 case)\n"
    assert proctor("test", "dataset.json").code == 0


@pytest.mark.needs("pixie")
def test_the_trace_of_a_trial_becomes_an_entry_with_what_was_asked_answered_and_expected(
    proctor: Command, app: Path
) -> None:
    proctor("test", "suite.yaml", "-k", "rome")
    ended = proctor("trace", "to-case")
    made = entry(ended)
    assert (made["entry_kwargs"], made["description"], made["expectation"]) == (
        {"input": "Rome"},
        "Rome",
        "It is sunny.",
    )
    assert made["x-pixie"]["eval_output"] == [{"name": "output", "value": "It is sunny."}]
    assert "not an object" in ended.err and "expectation" not in ended.err


@pytest.mark.needs("pixie")
def test_a_trace_of_another_tool_becomes_an_entry_too(proctor: Command, app: Path) -> None:
    step = ObserveSpan("1" * 16, "a" * 32, None, 1.0, 2.0, 1.0, "chat", {"q": "hi", "n": 1}, "hello")
    (app / "otlp.json").write_text(json.dumps(to_otlp([step])))
    made = entry(proctor("trace", "to-case", "--input", "otlp.json"))
    assert made["entry_kwargs"] == {"q": "hi", "n": 1}
    assert made["eval_input"] == [{"name": "input", "value": {"q": "hi", "n": 1}}]
    assert made["x-pixie"] == {"eval_output": [{"name": "output", "value": "hello"}]}
    call = LLMSpan("1" * 16, "a" * 32, None, 1.0, 2.0, 1.0, input_messages=(UserMessage.from_text("hi"),))
    (app / "otlp.json").write_text(json.dumps(to_otlp([call])))
    assert entry(proctor("trace", "to-case", "--input", "otlp.json"))["entry_kwargs"] == {"input": "hi"}


@pytest.mark.needs("pixie")
def test_an_input_with_several_values_keeps_the_first_and_says_so(proctor: Command, app: Path) -> None:
    proctor("trace", "--runnable", "app.py:twice", "--input", "kwargs.json")
    ended = proctor("trace", "to-case")
    assert entry(ended)["eval_input"] == [{"name": "n", "value": 1}]
    assert "'n' had several values" in ended.err


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        (None, ("--input", "t.json"), "cannot be read"),
        ("", ("--input", "t.json"), "it is empty"),
        ('{"resourceSpans": []}', ("--input", "t.json"), "has no spans"),
        ("{", ("--input", "t.json"), "is not valid JSON"),
        ("", ("--input", "t.json", "--trace", "x"), "cannot be combined"),
        ("", ("--output", " "), "--output must name a file"),
        (
            json.dumps(to_otlp([ObserveSpan("1", "2"), ObserveSpan("1", "3")])),
            ("--input", "t.json"),
            "has 2 traces",
        ),
    ],
)
def test_what_is_no_single_trace_is_refused(
    proctor: Command, app: Path, content: str | None, arguments: tuple[str, ...], said: str
) -> None:
    if content is not None:
        (app / "t.json").write_text(content)
    ended = proctor("trace", "to-case", *arguments)
    assert (ended.code, said in ended.err) == (2, True), ended


def test_a_conversation_is_no_entry(proctor: Command, app: Path) -> None:
    turns = "[{input: a, expected: x}, {input: b}]"
    (app / "talk.yaml").write_text(f"agent: app.py:agent\ncases: [{{id: talk, turns: {turns}}}]\n")
    proctor("test", "talk.yaml")
    ended = proctor("trace", "to-case")
    assert (ended.code, "has 2 turns" in ended.err) == (2, True)
