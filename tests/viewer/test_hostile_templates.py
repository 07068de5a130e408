"""Every template with hostile text in every field: nothing of it becomes markup, or reaches a terminal or a CI log."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hostile_text import as_lists, check_hostile_text
from reporting_samples import FAILED, make_run, report, score, small_run, trial
from repository import ROOT
from served_viewer import serve_viewer
from stored_runs import FIRST, SECOND, store_run, two_runs

from proctor.cases.suite import Case, Suite
from proctor.gate.baseline import BaselineLine, write_line
from proctor.plugins import SHIPPED
from proctor.reporting.arms_report import ArmsView, CellView
from proctor.reporting.comparison_report import WRITERS
from proctor.reporting.html import environment, report_page
from proctor.reporting.html.notebook import NotebookProgress, _progress, comparison_html, run_html
from proctor.reporting.html.run_view import GateView, NamedValue
from proctor.results.comparison.compare import compare_runs
from proctor.results.score import Outcome
from proctor.tracing.spans import AssistantMessage, LLMSpan, ObserveSpan, TextContent, UserMessage
from proctor.viewer import compare_page

Pages = dict[str, Mapping[str, Any]]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """By template: what it got for a real page."""
    found: Pages = {}
    original = environment.render

    def render(template: str, **values: Any) -> str:
        kept = {name: as_lists(value) for name, value in values.items()}
        richest = max(found.get(template, {}), kept, key=lambda each: len(original(template, **each)) if each else 0)
        found[template] = richest
        return original(template, **kept)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(environment, "render", render)
        patched.setattr(environment, "render_for_others", render)
        patched.setattr(environment, "write", lambda template, out, **values: out.write(render(template, **values)))
        _write_files()
        _visit_pages(tmp_path_factory.mktemp("hostile"), patched)
    _add_sections(found)
    yield found


def _write_files() -> None:
    report(report_page, small_run())
    comparison = compare_runs(make_run([trial("a")]), make_run([trial("a", FAILED, "No.")]))
    WRITERS["html"](comparison, io.StringIO())
    run_html(small_run())
    comparison_html(comparison)
    _progress(Outcome.PASSED, "all passed")
    assert NotebookProgress()._bar()


def _visit_pages(folder: Path, patched: pytest.MonkeyPatch) -> None:
    store = folder / ".proctor"
    two_runs(store)
    model = LLMSpan(
        "b", "t", "a", 1.2, 1.7, 500.0, input_tokens=12, output_tokens=4, input_messages=(UserMessage.from_text("Hi"),),
        output_messages=(AssistantMessage((TextContent("Five days."),)),),
    )  # fmt: skip
    step = ObserveSpan("a", "t", None, 1.0, 2.0, 1000.0, "answer", input={"q": "?"}, error="ValueError: no")
    judge = {"judge": {"model": "m", "calls": [{"kind": "k", "model": "m", "key": "k1"}], "votes": ["a vote"]}}
    judged = score(FAILED, 0.1, "Factuality", reasoning="no", details=judge)
    run = "20260103-000000-cccccc"
    store_run(store, run, [trial("traced", FAILED, "x", judged, spans=(step, model), number=n) for n in (1, 2)], day=2)
    arms = {"old": lambda question: "no", "new": lambda question: question}
    of_arms = Suite("desk", [Case("hi", "hi")]).run(arms=arms, store=store).id
    baseline = folder / "suite.baseline.jsonl"
    line = BaselineLine("support", "refund", "faq-bot", "c", "e", "run-1", trials=4, passes=3)
    baseline.write_text(write_line(line), encoding="utf-8")
    case = "suite=support&case"
    with serve_viewer(store, [str(store), str(baseline)]) as client:
        for place in (
            "/",
            "/baselines",
            "/grade",
            "/nonsense",
            f"/runs/{SECOND}",
            f"/runs/{SECOND}?group=tag&q=e&show=passed&slower=1",
            f"/runs/{SECOND}/grade",
            f"/runs/{of_arms}/arms",
            f"/runs/{SECOND}/case?{case}=opening",
            f"/runs/{run}/case?{case}=traced",
            f"/compare?a={FIRST}&b={SECOND}",
            f"/compare?a={FIRST}&b={SECOND}&{case}=refund",
        ):
            assert client.get(place).status_code in (200, 404)
        patched.setattr(compare_page, "LARGE_COMPARISON", 0)
        assert client.get(f"/compare?a={FIRST}&b={SECOND}").status_code == 200


def _add_sections(found: Pages) -> None:
    """What few runs have: a gate, several arms, judges."""
    gate = GateView("regression", "it got worse", [NamedValue("worse", "c1")])
    cells = [CellView(Outcome.PASSED, "1/1", "an answer", "3 ms", "/case"), CellView(None, "–", "", "")]
    statements = [(Outcome.FAILED, "one compared with two", "time x2")]
    rows, totals = [("c1", cells)], [("pass rate", ["1", "0"])]
    arms = [ArmsView("shop", ["one", "two"], totals, rows, 3, statements, ["a note"], "/arms")]
    facts = [NamedValue("Judge", "m: 3 calls", "a note"), NamedValue("Run", "r1", is_code=True)]
    for name, values in (("reporting/templates/run.html", {"gate": gate, "compared_arms": arms, "facts": facts}),):
        found[name] = {**found[name], **values}
    viewer = "viewer/templates/run.html"
    found[viewer] = {**found[viewer], "gate": gate, "arms": arms, "judges": facts}
    values = {"row": found[viewer]["row"], "run_address": "/runs/r", "previous_page": "/a", "next_page": "/b"}
    found["viewer/templates/arms.html"] = {**found["viewer/templates/arms.html"], **values, "arms": arms}


def _all_templates() -> set[str]:
    """The templates of the core; the tests of a tool in `SHIPPED` cover the tool's own."""
    source = ROOT / "src" / "proctor"
    tools = {source.parent.joinpath(*module.split(".")).parent for module in SHIPPED}
    paths = [path for path in source.glob("**/templates/**/*.html") if tools.isdisjoint(path.parents)]
    return {path.relative_to(source).as_posix() for path in paths}


def test_every_template_is_covered_here(pages: Pages) -> None:
    pages_and_parts = set(pages)
    source = ROOT / "src" / "proctor"
    while True:
        used = {
            name
            for page in pages_and_parts
            for name in re.findall(r'{% (?:import|extends|include) "([^"]+)"', (source / page).read_text("utf-8"))
        }
        if used <= pages_and_parts:
            break
        pages_and_parts |= used
    assert _all_templates() == pages_and_parts


def test_hostile_text_in_every_field_becomes_no_markup(pages: Pages) -> None:
    for template, values in pages.items():
        check_hostile_text(template, values)
