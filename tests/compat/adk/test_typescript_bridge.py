"""What the bridge of the template adk_ts answers for the events of a runner, without any package from npm.

A small module takes the place of `@iqai/adk` here. `nox -s typescript` runs the template with the real package.
"""

from __future__ import annotations

import json
import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from engine_helpers import run, suite

from proctor.agents.resolve import resolve_agent
from proctor.cases.suite import Case, Turn
from proctor.results.run import Outcome, Trial

pytestmark = [
    pytest.mark.process,
    pytest.mark.needs("adk"),
    pytest.mark.skipif(shutil.which("node") is None, reason="needs Node"),
]

PACKAGE = """
class Model {
  constructor() { this.model = "small"; }
  async *generateContentAsync(text) {
    if (text.includes("quota")) throw Object.assign(new Error("no quota"), { status: 429 });
    if (text.includes("too long")) throw Object.assign(new Error("too long"), { status: 400 });
    yield { usageMetadata: text.includes("unknown") ? undefined : { promptTokenCount: 3, candidatesTokenCount: 2 } };
  }
}
exports.agent = { name: "fake", canonicalModel: new Model(), runAsync() {} };
exports.InMemorySessionService = class {
  async createSession(appName, userId, state, id) { return (this.session = { appName, userId, state, id }); }
  async getSession() { return this.session; }
};
exports.Runner = class {
  constructor(options) { Object.assign(this, options); }
  async *runAsync({ userId, sessionId, newMessage }) {
    const { session } = this.sessionService, text = newMessage.parts[0].text;
    const event = (...parts) => ({ author: "fake", content: { role: "model", parts } });
    session.turns = (session.turns ?? 0) + 1;
    try { for await (const _ of this.agent.canonicalModel.generateContentAsync(text)); }
    catch (error) {
      if (text.includes("recovers")) { yield event({ text: "recovered" }); return; }
      yield { ...event({ text: "Error: " + error.message }), errorCode: "X", errorMessage: error.message }; return;
    }
    if (text === "throw") throw new Error("a bug");
    if (text === "circle") { session.state.self = session.state; yield event({ text: "round" }); return; }
    yield event({ text: "Wait." }, { functionCall: { id: "1", name: "good", args: { a: 1 } } },
                { functionCall: { id: "2", name: "bad" } });
    yield event({ functionResponse: { id: "2", name: "bad", response: { error: "broke" } } },
                { functionResponse: { id: "1", name: "good", response: { b: 2 } } });
    session.state.seen = text;
    yield { ...event({ text: "half" }), partial: true };
    const names = { text: `${userId} ${this.appName}` };
    yield event({ text: "hidden", thought: true }, names, { text: String(session.turns) });
  }
};
"""
AGENTS = """
import { agent } from "@iqai/adk";
export { agent };
export const build = async () => ({ agent, runner: {} });
export const builder = { build };
export default agent;
export const nothing = 1;
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    template = resources.files("proctor.compat.adk") / "template_ts"
    bridge = (template / "proctor-bridge.cjs.tmpl").read_text(encoding="utf-8")
    (tmp_path / "proctor-bridge.cjs").write_text(bridge, encoding="utf-8")
    (tmp_path / "agent.mjs").write_text(AGENTS)
    package = tmp_path / "node_modules" / "@iqai" / "adk"
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "@iqai/adk", "main": "index.js"}))
    (package / "index.js").write_text(PACKAGE)
    return tmp_path


def answers(folder: Path, *cases: Case, export: str = "agent.mjs") -> dict[str, Trial]:
    agent = resolve_agent(f"serve:node proctor-bridge.cjs {export}", folder)
    results = run(suite(cases), agent=agent)
    return {trial.case.id: trial for trial in results[0].trials}


def case(name: str, *texts: Any, **fields: Any) -> Case:
    return Case(id=name, turns=tuple(Turn(input=text) for text in texts), **fields)


def test_text_calls_results_errors_state_and_tokens_arrive(folder: Path) -> None:
    names = {"x-adk": {"userId": "ann", "appName": "shop"}}
    trials = answers(
        folder,
        case("talk", "one", "two", state={"n": 5}, extra=names),
        case("unnamed", {"key": "value"}),
        case("unknown", "unknown tokens"),
        case("recovers", "quota, recovers"),
    )
    first, second = trials["talk"].replies
    assert (first.text, second.text) == ("ann shop\n1", "ann shop\n2")
    assert [(call.name, call.arguments, call.result, call.error) for call in first.tool_calls] == [
        ("good", {"a": 1}, {"b": 2}, None),
        ("bad", {}, {"error": "broke"}, "broke"),
    ]
    assert first.state == {"n": 5, "seen": "one"}
    assert first.usage is not None
    assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.model_calls) == (3, 2, 1)
    assert trials["unnamed"].replies[0].text == "user fake\n1"
    assert trials["unnamed"].replies[0].state == {"seen": '{"key":"value"}'}
    usage = trials["unknown"].replies[0].usage
    assert usage is not None
    assert usage.input_tokens is None
    assert trials["recovers"].replies[0].text == "recovered"


def test_errors_of_the_model_are_not_those_of_the_agent(folder: Path) -> None:
    texts = {"quota": "no quota", "too long": "too long", "throw": "a bug", "circle": "circular structure"}
    trials = answers(folder, *(case(text, text) for text in texts))
    assert {name: trial.outcome for name, trial in trials.items()} == {
        "quota": Outcome.ERROR,
        "too long": Outcome.FAILED,
        "throw": Outcome.FAILED,
        "circle": Outcome.FAILED,
    }
    assert all(reason in trials[name].reason for name, reason in texts.items())


@pytest.mark.parametrize("export", ["agent.mjs:build", "agent.mjs:builder", "agent.mjs:default"])
def test_an_export_may_be_an_agent_or_what_makes_one(folder: Path, export: str) -> None:
    assert answers(folder, case("one", "one"), export=export)["one"].replies[0].text == "user fake\n1"


def test_a_file_without_an_agent_says_what_it_exports(folder: Path) -> None:
    trial = answers(folder, case("one", "one"), export="agent.mjs:nothing")["one"]
    assert trial.outcome is Outcome.ERROR
    assert "exports no agent nothing; it exports agent, build, builder" in " ".join(trial.reason.split())
