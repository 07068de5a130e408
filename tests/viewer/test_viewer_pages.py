"""The pages of the viewer, asked for over HTTP."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import httpx2
import pytest
from reporting_samples import ERROR, FAILED, HOSTILE, PASSED, PENDING, SKIPPED, make_run, score, single, trial
from served_viewer import serve_viewer
from stored_runs import FIRST, SECOND, store_run, two_runs

from proctor.cases.suite import Criteria
from proctor.gate.baseline import BaselineLine, write_line
from proctor.results.store.judge_cache import StoredJudgeCalls
from proctor.results.store.run_files import export_run
from proctor.results.store.store import Store
from proctor.results.verdict import verdict
from proctor.tracing.spans import AssistantMessage, LLMSpan, ObserveSpan, SystemMessage, TextContent, UserMessage
from proctor.viewer import app, compare_page
from proctor.viewer.pages import Page, PageRoute, Visit
from proctor.viewer.sources import open_sources


def shown(client: httpx2.Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, answer.text
    return answer.text.replace("&#34;", "&quot;")


def cases_in(text: str) -> list[str]:
    """The cases that a run's page lists, in their order."""
    return re.findall(r'<tr data-item><th scope="row"><a href="[^"]*"[^>]*>([^<]*)</a>', text)


def test_the_first_page_lists_every_run_with_its_verdict_and_a_trend(client: httpx2.Client) -> None:
    text = shown(client, "/")
    table = text[text.index("<table") :]
    assert table.index(SECOND) < table.index(FIRST)
    assert "after the change" in text
    assert "75.0%" in text  # of the first run
    assert 'aria-label="Pass rate over 2 runs' in text
    assert f'<a href="/runs/{FIRST}" aria-label="75.0% of 4 cases' in text


def test_a_run_shows_failures_first_and_repeats_together(client: httpx2.Client) -> None:
    text = shown(client, f"/runs/{SECOND}")
    assert cases_in(text) == ["opening", "refund", "tone", "address", "delivery"]
    assert "1/2 flaky" in text


def test_a_run_says_what_changed_since_the_last_one(client: httpx2.Client) -> None:
    assert "<b>2 broken, 1 fixed, 1 new</b>" in shown(client, f"/runs/{SECOND}")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("show=failed", ["opening", "refund"]),
        ("show=flaky", ["opening"]),
        ("show=broken", ["opening", "refund"]),
        ("show=fixed", ["address"]),
        ("show=pending", ["tone"]),
        ("show=error", []),
        ("tag=slow", ["delivery"]),
        ("evaluator=Tone", ["tone"]),
        ("evaluator=ExactMatch", ["opening", "refund"]),
        ("q=certainly", ["tone"]),
        ("q=A-17", ["refund"]),
        ("q=DELIV", ["delivery"]),
        ("q=100%25", []),
        ("slower=1000", ["delivery"]),
        ("cost=0.001", ["refund"]),
        ("sort=plan", ["refund", "opening", "address", "delivery", "tone"]),
        ("sort=slowest", ["delivery", "refund", "opening", "address", "tone"]),
        ("group=tag", ["delivery", "delivery", "opening", "refund", "tone", "address"]),
        ("sort=case&show=passed", ["address", "delivery"]),
        ("page=2", []),
        ("show=nonsense&sort=nonsense&page=-1&cost=abc&group=x", ["opening", "refund", "tone", "address", "delivery"]),
    ],
)
def test_the_address_of_a_run_says_which_cases_are_shown(
    client: httpx2.Client, query: str, expected: list[str]
) -> None:
    assert cases_in(shown(client, f"/runs/{SECOND}?{query}")) == expected


def test_failures_are_grouped_by_their_cause(client: httpx2.Client) -> None:
    text = shown(client, f"/runs/{SECOND}?group=cluster")
    assert 'class="group"' in text
    assert sorted(cases_in(text)) == ["opening", "refund"]


def test_a_case_shows_the_conversation_and_what_differs_inside_the_answer(client: httpx2.Client) -> None:
    text = shown(client, f"/runs/{SECOND}/case?suite=support&case=refund")
    assert "<del>Five</del> days." in text
    assert "<ins>Four</ins> days." in text
    assert "order_status" in text
    assert "A-17" in text


def test_a_flaky_case_opens_at_the_trial_that_failed_with_its_repeats_beside_it(client: httpx2.Client) -> None:
    text = shown(client, f"/runs/{SECOND}/case?suite=support&case=opening")
    assert "trial 2 of 2" in text
    assert "1/2 flaky" in text
    assert text.count('<div class="card') == 2


def test_a_case_shows_how_it_went_in_other_runs(client: httpx2.Client) -> None:
    text = shown(client, f"/runs/{SECOND}/case?suite=support&case=refund")
    history = text[text.index('id="history"') :]
    assert FIRST in history
    assert "0/1" in history
    assert "1/1" in history


def test_two_runs_are_compared_in_the_groups_of_the_command_line(client: httpx2.Client) -> None:
    text = shown(client, f"/compare?a={FIRST}&b={SECOND}")
    assert "Broken" in text
    assert "Fixed" in text
    assert "suite=support&amp;case=refund" in text


def test_large_runs_are_compared_by_outcome_before_every_trial_is_read(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compare_page, "LARGE_COMPARISON", 5)
    text = shown(client, f"/compare?a={FIRST}&b={SECOND}")
    assert "broken</span> 2 cases" in text
    assert "fixed</span> 1 case" in text
    assert "still passing</span> 1 case" in text
    assert "1/1 → 0/1" in text
    assert "permutation" not in text
    assert "Broken" in shown(client, f"/compare?a={FIRST}&b={SECOND}&whole=1")


def test_one_case_of_two_runs_shows_where_the_conversations_part(client: httpx2.Client) -> None:
    text = shown(client, f"/compare?a={FIRST}&b={SECOND}&suite=support&case=refund")
    assert "first difference" in text
    assert "<ins>Four</ins>" in text


@pytest.mark.parametrize(
    "address",
    [
        "/runs/nonsense",
        "/runs/..%2F..%2Fetc%2Fpasswd",
        f"/runs/{SECOND}/case?suite=support&case=nonsense",
        f"/compare?a={FIRST}&b=nonsense",
        "/assets/nonsense.js",
        "/assets/..%2Flibrary.py",
        "/nonsense",
        f"/runs/{SECOND}/case",
        f"/runs/{SECOND}/case?suite=%ED%A0%80&case=%FF",
    ],
)
def test_what_is_not_there_is_said_on_a_page(client: httpx2.Client, address: str) -> None:
    answer = client.get(address)
    assert answer.status_code == 404
    assert "<h1" in answer.text


def test_an_exported_run_is_shown_without_a_store(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    kept = Store(store)
    with file.open("w", encoding="utf-8") as out:
        export_run(kept.find_run(SECOND), out)
    kept.close()
    with serve_viewer(tmp_path / "none", [str(file)]) as client:
        assert cases_in(shown(client, f"/runs/{SECOND}")) == ["opening", "refund", "tone", "address", "delivery"]


@pytest.mark.parametrize("status", ["interrupted", "died"])
def test_an_unfinished_run_has_its_status_in_the_word_of_proctor_runs(tmp_path: Path, status: str) -> None:
    store_run(tmp_path, FIRST, [trial("one")], status=status)
    with serve_viewer(tmp_path) as client:
        assert f"</span> {status}</span>" in shown(client, "/")
        text = shown(client, f"/runs/{FIRST}")
    assert f"<h1>{status.capitalize()}</h1>" in text
    assert cases_in(text) == ["one"]


def test_a_page_hears_of_what_changed_while_it_was_on_its_way(tmp_path: Path) -> None:
    store_run(tmp_path, FIRST, [trial("one")], status="interrupted")
    store = Store(tmp_path)
    with serve_viewer(tmp_path) as client:
        [live] = re.findall(r'data-live="([^"]*)"', shown(client, f"/runs/{FIRST}"))
        store.add_trials(store.find_run(FIRST).no, [trial("two", position=1)])
        with client.stream("GET", live.replace("&amp;", "&")) as events:
            told = next(line for line in events.iter_lines() if line.startswith("data:"))
    store.close()
    assert json.loads(told.removeprefix("data:")) == {"trials": 2, "status": "interrupted"}


def test_a_damaged_run_does_not_hide_the_others(tmp_path: Path) -> None:
    two_runs(tmp_path)
    with closing(sqlite3.connect(tmp_path / "results.db")) as database, database:
        database.execute("UPDATE runs SET info = '[' WHERE id = ?", (FIRST,))
    with serve_viewer(tmp_path) as client:
        assert SECOND in shown(client, "/")
        assert client.get(f"/runs/{FIRST}").status_code == 400


def test_a_store_that_cannot_be_written_can_be_looked_at(tmp_path: Path) -> None:
    two_runs(tmp_path / "kept")
    for path in (*(tmp_path / "kept").iterdir(), tmp_path / "kept"):
        path.chmod(0o555)
    try:
        with serve_viewer(tmp_path / "kept") as client:
            assert cases_in(shown(client, f"/runs/{SECOND}?show=failed")) == ["opening", "refund"]
    finally:
        (tmp_path / "kept").chmod(0o755)


def test_json_is_compared_inside(tmp_path: Path) -> None:
    case = single("json", output={"days": 5, "kind": "refund"})
    store_run(tmp_path, FIRST, [trial(case, FAILED, '{"days": 4, "kind": "refund"}')])
    with serve_viewer(tmp_path) as client:
        text = shown(client, f"/runs/{FIRST}/case?suite=support&case=json")
    assert "&quot;days&quot;: <del>5</del>," in text
    assert "&quot;days&quot;: <ins>4</ins>," in text


def test_a_case_shows_what_its_judge_was_asked_and_replied(tmp_path: Path) -> None:
    call = {"kind": "factuality", "model": "openai:gpt-5-mini", "key": "k1"}
    account = {"judge": {"model": "openai:gpt-5-mini", "calls": [call], "votes": []}}
    judged = score(FAILED, 0.2, "Factuality", reasoning="it leaves out the fee", details=account)
    store_run(tmp_path, FIRST, [trial("judged", FAILED, "Five days.", judged)])
    calls = StoredJudgeCalls(tmp_path / "results.db")
    calls.put(
        "k1",
        {**call, "system": "You are a judge.", "user": "Is it so?", "reply": '{"verdict": "no"}'},
    )
    calls.close()
    with serve_viewer(tmp_path) as client:
        text = shown(client, f"/runs/{FIRST}/case?suite=support&case=judged")
    for words in ("You are a judge.", "Is it so?", "{&quot;verdict&quot;: &quot;no&quot;}", "it leaves out the fee"):
        assert words in text


def test_a_trace_is_a_waterfall_with_messages_tokens_and_cost(tmp_path: Path) -> None:
    model = LLMSpan(
        "b",
        "t",
        "a",
        started_at=1.2,
        ended_at=1.7,
        duration_ms=500.0,
        request_model="gpt-4o",
        input_tokens=1200,
        output_tokens=40,
        input_messages=(SystemMessage("Be brief."), UserMessage.from_text("How long?")),
        output_messages=(AssistantMessage((TextContent("Five days."),)),),
    )
    step = ObserveSpan("a", "t", None, 1.0, 2.0, 1000.0, "answer", input={"q": "How long?"}, error="ValueError: no")
    store_run(tmp_path, FIRST, [trial("traced", spans=(step, model))])
    with serve_viewer(tmp_path) as client:
        text = shown(client, f"/runs/{FIRST}/case?suite=support&case=traced")
    trace = text[text.index('id="trace"') :]
    assert "--at:20%;--long:50%" in trace
    assert "--depth:1" in trace
    for words in ("Be brief.", "Five days.", "1,200 in, 40 out · $", "500 ms", "ValueError: no", "2 spans"):
        assert words in trace


def test_a_long_run_comes_in_pages_of_fifty(tmp_path: Path) -> None:
    store_run(tmp_path, FIRST, [trial(f"c{at:03d}", FAILED if at % 40 == 7 else PASSED) for at in range(120)])
    with serve_viewer(tmp_path) as client:
        pages = [cases_in(shown(client, f"/runs/{FIRST}?sort=case&page={at}")) for at in (1, 2, 3, 4)]
        assert [len(page) for page in pages] == [50, 50, 20, 0]
        assert [name for page in pages for name in page] == [f"c{at:03d}" for at in range(120)]
        assert cases_in(shown(client, f"/runs/{FIRST}"))[:4] == ["c007", "c047", "c087", "c000"]


def test_new_trials_are_added_to_what_is_known_of_a_run(tmp_path: Path) -> None:
    store_run(tmp_path, FIRST, [trial("one"), trial("two")])
    store = Store(tmp_path)
    no = store.find_run(FIRST).no
    with serve_viewer(tmp_path) as client:
        assert "2/2" not in shown(client, f"/runs/{FIRST}")
        store.add_trials(no, [trial("one", FAILED, "No.", number=2, position=2), trial("three", position=3)])
        text = shown(client, f"/runs/{FIRST}")
        assert cases_in(text) == ["one", "two", "three"]
        assert "1/2 flaky" in text
        store.drop_trials(no, [store.stored_trials(no)["support", "one", 2].no])
        assert "flaky" not in shown(client, f"/runs/{FIRST}?sort=plan")
    store.close()


@pytest.mark.parametrize("rule", ["all", "any", "majority", "mean"])
def test_cases_come_to_what_the_verdict_says_by_every_rule(tmp_path: Path, rule: str) -> None:
    outcomes = ["pppp", "ppff", "pfff", "ffff", "ppee", "feee", "eeee", "nnpp", "ssss", "sspp", "pfen"]
    kinds = {"p": PASSED, "f": FAILED, "e": ERROR, "n": PENDING, "s": SKIPPED}
    trials = [
        trial(f"c{at}", kinds[letter], "x", score(kinds[letter], float(letter == "p")), number=number)
        for at, word in enumerate(outcomes)
        for number, letter in enumerate(word, 1)
    ]
    placed = [replace(item, position=at) for at, item in enumerate(trials)]
    run = make_run(placed, id=FIRST, criteria=Criteria(trials=rule))
    store = Store(tmp_path)
    store.add_whole_run(run)
    store.close()
    sources = open_sources((), tmp_path)
    cases = sources.all[0].cases(sources.find(FIRST)[1]).cases
    sources.close()
    found = {row.verdict.case_id: row.verdict.outcome.value for row in cases}
    assert found == {case.case_id: case.outcome.value for case in verdict(run).suites[0].cases}


def test_a_baseline_shows_what_is_usual(tmp_path: Path) -> None:
    lines = [
        BaselineLine("support", "refund", "faq-bot", "c", "e", f"run-{at}", trials=4, passes=passes)
        for at, passes in enumerate((4, 2))
    ]
    file = tmp_path / "suite.baseline.jsonl"
    file.write_text("".join(write_line(line) for line in lines), encoding="utf-8")
    with serve_viewer(tmp_path, [str(file)]) as client:
        text = shown(client, "/baselines")
    assert "refund" in text
    assert "75.0%" in text


def test_a_baseline_counts_only_what_counts_after_a_restart(tmp_path: Path) -> None:
    old = BaselineLine("support", "refund", "shop.py:agent", "c", "e", "run-1", trials=10, passes=0)
    new = replace(old, run="run-2", trials=3, passes=3, since="run-2")
    file = tmp_path / "suite.baseline.jsonl"
    file.write_text(write_line(old) + write_line(new), encoding="utf-8")
    with serve_viewer(tmp_path, [str(file)]) as client:
        text = shown(client, "/baselines")
    assert "100.0%" in text
    assert '<td class="number">3</td><td class="number">1</td>' in text
    assert "shop.py:agent<" in text


def test_a_page_is_a_function_a_template_and_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def weather(visit: Visit) -> Page:
        return Page("message.html", "Weather", {"text": f"now: {visit.query['now']}"})

    monkeypatch.setattr(app, "PAGES", (*app.PAGES, PageRoute("/weather", weather, "Weather")))
    two_runs(tmp_path)
    with serve_viewer(tmp_path) as client:
        assert "now: rain" in shown(client, "/weather?now=rain")
        assert '<a href="/weather">Weather</a>' in shown(client, "/")


def test_text_of_agents_is_shown_as_text(tmp_path: Path) -> None:
    folder = tmp_path / ".proctor"
    store_run(folder, FIRST, [trial(HOSTILE, FAILED, HOSTILE, suite=HOSTILE)])
    with serve_viewer(folder) as client:
        for address in ("/", f"/runs/{FIRST}", f"/runs/{FIRST}/case?{_case(HOSTILE, HOSTILE)}"):
            text = shown(client, address)
            assert "<script>" not in text.lower()
            assert "<img" not in text.lower()
            assert "\u202e" not in text


def test_a_name_with_half_a_surrogate_pair_can_be_opened(tmp_path: Path) -> None:
    folder = tmp_path / ".proctor"
    name = "half \ud800 a pair"
    store_run(folder, FIRST, [trial(name, FAILED, "\ud800")])
    with serve_viewer(folder) as client:
        [link] = re.findall(r'<a href="(/runs/[^"]*/case[^"]*)"[^>]*>half', shown(client, f"/runs/{FIRST}"))
        assert "half \\ud800 a pair" in shown(client, link.replace("&amp;", "&"))


def _case(suite: str, case: str) -> str:
    return urlencode({"suite": suite, "case": case}, errors="surrogatepass")


def test_a_run_shows_the_input_and_the_answer_of_each_case_in_short(tmp_path: Path) -> None:
    long = trial(single("long-" + "x" * 300, "<b>Why</b> " + "w" * 2_000), FAILED, "<script>no</script> " + "a" * 5_000)
    repeated = [trial("twice", PASSED, "All is well."), trial("twice", FAILED, "It broke.", number=2)]
    store_run(tmp_path, FIRST, [long, *repeated, trial("unanswered", ERROR, None, replies=(), reason="no key")])
    with serve_viewer(tmp_path) as client:
        text = shown(client, f"/runs/{FIRST}")
    assert "&lt;b&gt;Why&lt;/b&gt; www" in text
    assert "&lt;script&gt;no" in text
    assert "a" * 301 not in text
    assert "It broke." in text  # the trial that did not pass
    assert "All is well." not in text
    assert "data-hide-texts" in text


@pytest.mark.parametrize(("status", "is_gone"), [("running", False), ("interrupted", False), ("finished", True)])
def test_a_case_that_has_not_run_yet_is_not_gone(tmp_path: Path, status: str, is_gone: bool) -> None:
    store_run(tmp_path, FIRST, [trial(f"c{at}") for at in range(48)])
    store_run(tmp_path, SECOND, [trial("c0")], day=1, status=status)
    with serve_viewer(tmp_path) as client:
        run = shown(client, f"/runs/{SECOND}")
        compared = shown(client, f"/compare?a={FIRST}&b={SECOND}")
    assert ("47 gone" in run) is is_gone
    assert (">Gone<" in compared) is is_gone
