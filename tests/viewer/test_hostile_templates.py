"""Every template with hostile text in every field: nothing of it becomes markup, or reaches a terminal or a CI log."""

from __future__ import annotations

import dataclasses
import enum
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from kept_runs import FIRST, SECOND, keep, two_runs
from reporting_samples import FAILED, make_run, report, score, small_run, trial
from repository import ROOT
from served_viewer import served

from proctor.compat.pixie.scorecard import generate_dataset_scorecard_html, scorecards_of
from proctor.gate.baseline import BaselineLine, write_line
from proctor.mutation.findings import Rate
from proctor.mutation.report import MutantView, RateRow, SuiteView
from proctor.reporting.comparison_report import WRITERS
from proctor.reporting.html import environment, report_page
from proctor.reporting.html.notebook import NotebookProgress, _progress, comparison_html, run_html
from proctor.reporting.html.run_view import AgentsView, Fact, GateView
from proctor.results.comparison.comparing import compare_runs
from proctor.results.run import Outcome
from proctor.results.statistics import Estimate
from proctor.tracing.spans import AssistantMessage, LLMSpan, ObserveSpan, TextContent, UserMessage
from proctor.viewer import compare_page

HOSTILE = (
    "x hostile=1 \"'><hostile-tag hostile='1'></pre></td><script>alert(1)</script><img src=x onerror=alert(2)>"
    "{{ 7 * 7 }} \x1b[2J \u202e \ud800 \x00\n::error file=a::owned ##vso[x]y"
)
Pages = dict[str, Mapping[str, Any]]


class Elements(HTMLParser):
    """The elements and attributes that a browser finds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def hostile(value: Any) -> Any:
    """The same with every text replaced; outcomes and other words of a fixed list stay."""
    if isinstance(value, str):
        return value if isinstance(value, enum.Enum) else HOSTILE
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: hostile(getattr(value, field.name)) for field in dataclasses.fields(value) if field.init}
        return dataclasses.replace(value, **fields)
    if isinstance(value, Mapping):
        items = {hostile(key): hostile(item) for key, item in value.items()}
        return Counter(items) if isinstance(value, Counter) else items
    if isinstance(value, (list, tuple)):
        return type(value)(hostile(item) for item in value)
    return value


def at_rest(value: Any) -> Any:
    """The same with everything that can be iterated once as a list."""
    if isinstance(value, Iterator):
        return [at_rest(item) for item in value]
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return tuple(at_rest(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type) and hasattr(value, "rows"):
        return dataclasses.replace(value, rows=at_rest(value.rows))
    return value


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """By template: what it got for a real page."""
    found: Pages = {}
    original = environment.render

    def render(template: str, **values: Any) -> str:
        kept = {name: at_rest(value) for name, value in values.items()}
        richest = max(found.get(template, {}), kept, key=lambda each: len(original(template, **each)) if each else 0)
        found[template] = richest
        return original(template, **kept)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(environment, "render", render)
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
    generate_dataset_scorecard_html(scorecards_of(small_run())[0])
    rate = RateRow("Contains", Rate(1, 2), Estimate(0.5, 0.1, 0.9, 2), "50 %", "1")
    mutant = MutantView("c1: dropped", "a note", "before", "after")
    suite = SuiteView("shop", "50 %", "no", ["a remark"], [rate], [rate], [("Survivors", 2, [mutant])], [("a", "b")])
    values = {"title": "Mutants", "outcome": FAILED, "rate": "1", "reason": "r", "run": "r1", "seed": 0}
    environment.render("mutation/templates/report.html", **values, suites=[suite])


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
    keep(store, run, [trial("traced", FAILED, "x", judged, spans=(step, model), number=n) for n in (1, 2)], day=2)
    baseline = folder / "suite.baseline.jsonl"
    line = BaselineLine("support", "refund", "faq-bot", "c", "e", "run-1", trials=4, passes=3)
    baseline.write_text(write_line(line), encoding="utf-8")
    case = "suite=support&case"
    with served(store, [str(store), str(baseline)]) as client:
        for place in (
            "/",
            "/baselines",
            "/grade",
            "/nonsense",
            f"/runs/{SECOND}",
            f"/runs/{SECOND}?group=tag&q=e&show=passed&slower=1",
            f"/runs/{SECOND}/grade",
            f"/runs/{SECOND}/case?{case}=opening",
            f"/runs/{run}/case?{case}=traced",
            f"/compare?a={FIRST}&b={SECOND}",
            f"/compare?a={FIRST}&b={SECOND}&{case}=refund",
        ):
            assert client.get(place).status_code in (200, 404)
        patched.setattr(compare_page, "LARGE", 0)
        assert client.get(f"/compare?a={FIRST}&b={SECOND}").status_code == 200


def _add_sections(found: Pages) -> None:
    """What few runs have: a gate, several agents, judges."""
    gate = GateView("regression", "it got worse", [Fact("worse", "c1")])
    agents = [AgentsView("shop", ["one", "two"], [("c1", ["1/1", "0/1"])], 3, ["one against two"])]
    facts = [Fact("Judge", "m: 3 calls", "a note"), Fact("Run", "r1", is_code=True)]
    for name, values in (("reporting/templates/run.html", {"gate": gate, "compared_agents": agents, "facts": facts}),):
        found[name] = {**found[name], **values}
    viewer = "viewer/templates/run.html"
    found[viewer] = {**found[viewer], "gate": gate, "agents": agents, "judges": facts}


def _all_templates() -> set[str]:
    source = ROOT / "src" / "proctor"
    return {path.relative_to(source).as_posix() for path in source.glob("**/templates/**/*.html")}


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
        usual = Elements(environment.render(template, **values))
        text = environment.render(template, **{name: hostile(value) for name, value in values.items()})
        found = Elements(text)
        where = f"in {template}"
        assert "hostile" in text, where
        assert "hostile-tag" not in found.tags, where
        assert "img" not in found.tags, where
        assert found.tags.count("script") == usual.tags.count("script"), where
        assert not {name for name in found.attributes if name in ("hostile", "onerror")}, where
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e]", text), where
        assert "\n::error file=a::" not in text, where
        assert "##vso[" not in text, where
        assert "{{ 7 * 7 }}" in text, where
