"""The viewer in a real browser: what a person sees, clicks and types."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import accessibility_problems, open_browser, open_page
from playwright.sync_api import Browser, Page, expect
from reporting_samples import ERROR, FAILED, HOSTILE, PASSED, PENDING, report, score, trial
from served_viewer import serve_viewer
from stored_runs import FIRST, SECOND, store_run, two_runs

from proctor.agents.reply import Reply, ToolCall
from proctor.reporting.html import report_page
from proctor.results.store.store import Store

CASE = f"/runs/{SECOND}/case?suite=support&case=refund"
PAGES = {
    "runs": "/",
    "run": f"/runs/{SECOND}",
    "grouped run": f"/runs/{SECOND}?group=cluster&show=failed&slower=1",
    "baselines": "/baselines",
    "case": CASE,
    "flaky case": f"/runs/{SECOND}/case?suite=support&case=opening",
    "compare": f"/compare?a={FIRST}&b={SECOND}",
    "compared case": f"/compare?a={FIRST}&b={SECOND}&suite=support&case=refund",
    "grade": "/grade",
    "grading": f"/runs/{SECOND}/grade",
    "missing": "/nonsense",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("browser") / ".proctor"
    two_runs(folder)
    with serve_viewer(folder) as client:
        yield str(client.base_url).rstrip("/")


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    with open_page(browser, address, timezone_id="Asia/Tokyo", locale="en-GB") as page:
        yield page


def press(page: Page, *keys: str) -> None:
    """Type keys once the page listens."""
    expect(page.locator("html.ready")).to_be_attached()
    for key in keys:
        page.keyboard.press(key)


def cases(page: Page) -> list[str]:
    return page.locator("tr[data-item] th a").all_inner_texts()


@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_every_page_is_accessible_and_fits(browser: Browser, address: str, look: str) -> None:
    size = {"width": 400, "height": 800} if look == "phone" else {"width": 1280, "height": 900}
    scheme = "dark" if look == "dark" else "light"
    problems = {}
    with open_page(browser, address, viewport=size, color_scheme=scheme) as page:
        for name, place in PAGES.items():
            if name == "missing":
                continue
            page.goto(place)
            problems[name] = accessibility_problems(page)
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if wide > 0:
                problems[name].append(f"the page is {wide} pixels too wide")
            back = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (back == "rgb(246, 247, 249)") == (look != "dark")
    assert problems == {name: [] for name in problems}


def test_a_filter_is_in_the_address_and_the_address_shows_a_colleague_the_same(page: Page) -> None:
    page.goto(f"/runs/{SECOND}")
    page.get_by_role("link", name="flaky 1").click()
    expect(page).to_have_url(re.compile(r"show=flaky"))
    assert cases(page) == ["opening"]
    page.goto(f"/runs/{SECOND}")
    page.get_by_text("More filters").click()
    page.locator("select[name=tag]").select_option("slow")
    expect(page).to_have_url(re.compile(r"tag=slow"))
    expect(page.locator("tr[data-item]")).to_have_count(1)
    page.goto(page.url)
    assert cases(page) == ["delivery"]


def test_words_are_found_while_they_are_typed(page: Page) -> None:
    page.goto(f"/runs/{SECOND}")
    press(page, "/")
    page.keyboard.type("certainly")
    expect(page.locator("tr[data-item]")).to_have_count(1)
    expect(page.get_by_label("Find")).to_be_focused()
    expect(page.get_by_label("Find")).to_have_value("certainly")
    assert cases(page) == ["tone"]


def test_everything_is_reached_by_the_keyboard(page: Page) -> None:
    page.goto("/")
    press(page, "j")
    press(page, "Enter")
    expect(page).to_have_url(re.compile(SECOND))
    press(page, "j")
    press(page, "j")
    press(page, "Enter")
    expect(page.get_by_role("heading", name="refund")).to_be_visible()
    press(page, "j")
    expect(page.get_by_role("heading", name="opening", level=1)).to_be_visible()
    press(page, "u")
    expect(page.get_by_role("heading", name="Cases")).to_be_visible()
    press(page, "?")
    expect(page.get_by_role("dialog")).to_be_visible()
    press(page, "Escape")
    expect(page.get_by_role("dialog")).not_to_be_visible()
    press(page, "u")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()


def test_a_point_of_a_trend_opens_its_run(page: Page) -> None:
    page.goto("/")
    page.locator(f'.plot a[href="/runs/{FIRST}"]').first.focus()
    press(page, "Enter")
    expect(page).to_have_url(re.compile(FIRST))


def test_times_are_in_the_zone_of_the_reader(page: Page) -> None:
    page.goto(f"/runs/{FIRST}")
    expect(page.locator("time").first).to_have_text(re.compile("1 Jan 2026, 09:00"))


def test_two_runs_are_compared_down_to_where_two_conversations_part(page: Page) -> None:
    page.goto("/compare")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("Broken", exact=True)).to_be_visible()
    page.get_by_role("link", name="support/refund").click()
    expect(page.get_by_text("≠ first difference")).to_be_visible()
    assert page.locator("ins").first.inner_text() == "Four"


def test_a_printed_page_has_the_content_alone(page: Page) -> None:
    page.goto(f"/runs/{SECOND}")
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation", name="Pages")).not_to_be_visible()
    expect(page.get_by_label("Find")).not_to_be_visible()
    expect(page.get_by_role("heading", name="Failed")).to_be_visible()


def test_bars_of_a_distribution_have_their_own_heights(page: Page) -> None:
    page.goto(f"/runs/{SECOND}")
    heights = page.locator("#distributions rect").evaluate_all(
        "bars => bars.map(b => b.getBoundingClientRect().height)"
    )
    assert len(set(map(round, heights))) > 1


def test_pages_work_without_any_script(browser: Browser, address: str) -> None:
    with open_page(browser, address, java_script_enabled=False) as page:
        page.goto(f"/runs/{SECOND}")
        page.get_by_label("Find").fill("certainly")
        page.get_by_role("button", name="Apply").click()
        assert cases(page) == ["tone"]


def test_what_waits_is_graded_by_the_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    waits = score(PENDING, None, "Tone", details={"criteria": "Is it polite?"})
    store_run(tmp_path / ".proctor", FIRST, [trial(f"c{at}", PENDING, f"Answer {at}.", waits) for at in range(3)])
    with serve_viewer(tmp_path / ".proctor") as client, open_page(browser, str(client.base_url).rstrip("/")) as page:
        page.goto(f"/runs/{FIRST}/grade")
        expect(page.get_by_text("Answer 0.").first).to_be_visible()
        page.get_by_label("Your name").fill("Ada")
        press(page, "Escape")
        press(page, "c")
        page.keyboard.type("politely said")
        press(page, "Escape")
        press(page, "p")
        expect(page.get_by_text("Answer 1.").first).to_be_visible()
        press(page, "n")
        expect(page.get_by_text("Answer 2.").first).to_be_visible()
        press(page, "f")
        expect(page.get_by_text("Only skipped scores are left")).to_be_visible()
        page.get_by_role("link", name="Grade skipped scores").click()
        expect(page.get_by_text("Answer 1.").first).to_be_visible()
        assert page.get_by_label("Your name").input_value() == "Ada"
        page.goto(f"/runs/{FIRST}/case?suite=support&case=c0")
        expect(page.get_by_text("politely said").first).to_be_visible()


BAD = (
    "<script>alert(1)</script><img src=x onerror=alert(2)><a href='javascript:alert(3)'>x</a>"
    "[click](javascript:alert(4)) ![i](http://evil.example/i.png) \u202eevil\u202c \x00\x1b[31m \ud800 \u2028"
    "</pre></td></table></main><svg onload=alert(5)><style>*{display:none}</style>&lt;b&gt;'\"><b>"
)


def test_a_hostile_run_runs_nothing_and_asks_for_nothing(browser: Browser, tmp_path: Path) -> None:
    call = ToolCall(BAD, {BAD: BAD, "big": "x" * 100_000}, result={BAD: [BAD]}, error=BAD)
    reply = Reply(BAD + "y" * 1_000_000, tool_calls=(call,), retrieval_context=(BAD,))
    judge = {"judge": {"model": BAD, "calls": [{"kind": BAD, "model": BAD, "key": BAD}], "votes": [BAD]}}
    scores = (score(FAILED, 0.1, BAD, reasoning=BAD, details=judge), score(PENDING, None, HOSTILE, reasoning=BAD))
    trials = [
        trial(BAD, FAILED, None, *scores, replies=(reply,), suite=BAD, warnings=(BAD,)),
        trial(BAD, PASSED, BAD, suite=BAD, number=2),
        trial("error", ERROR, None, reason=BAD, suite=BAD),
    ]
    folder = tmp_path / ".proctor"
    store_run(folder, FIRST, trials)
    store_run(folder, SECOND, trials, day=1)
    with serve_viewer(folder) as client, open_page(browser, str(client.base_url).rstrip("/")) as page:
        for place in ("/", "/compare", f"/compare?a={FIRST}&b={SECOND}", "/grade", f"/runs/{SECOND}/grade"):
            page.goto(place)
            expect(page.get_by_role("main")).to_be_visible()
        page.goto(f"/runs/{SECOND}?q=%3Cscript%3E&group=cluster&evaluator={'%3Cb%3E'}&tag=%22%3E%3Cscript%3E")
        expect(page.get_by_role("heading", name="Cases")).to_be_visible()
        page.goto(f"/runs/{SECOND}?sort=plan")
        page.locator("tr[data-item] th a").first.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("<script>alert(1)</script>")
        for fold in page.locator("details").all():
            fold.evaluate("fold => { fold.open = true }")
        assert page.locator("script").count() == 1
        assert page.locator("img, iframe, object, style, a[href^=javascript]").count() == 0
        expect(page.get_by_text(f"{len(reply.text):,} characters in all").first).to_be_visible()


def test_the_report_as_a_file_asks_for_nothing_and_is_accessible(browser: Browser, tmp_path: Path) -> None:
    two_runs(tmp_path / ".proctor")
    store = Store(tmp_path / ".proctor")
    file = tmp_path / "report.html"
    file.write_text(report(report_page, store.find_run(SECOND)), encoding="utf-8")
    store.close()
    for scheme in ("light", "dark"):
        with open_page(browser, file.as_uri(), color_scheme=scheme) as page:
            page.goto(file.as_uri())
            page.get_by_role("button", name="Open all").click()
            assert accessibility_problems(page) == []


AGENT = """
import pathlib, time

def agent(question):
    while not pathlib.Path(question).exists():
        time.sleep(0.02)
    return question
"""
SUITE = """
agent: slow.py:agent
name: slow
cases:
""" + "".join(f"  - {{id: {name}, input: {name}, expected: {name}}}\n" for name in ("one", "two", "three"))


def test_a_run_of_another_process_is_followed_until_it_is_killed(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(AGENT, encoding="utf-8")
    (tmp_path / "suite.yaml").write_text(SUITE, encoding="utf-8")
    store_run(tmp_path / ".proctor", FIRST, [trial("before")])
    with serve_viewer(tmp_path / ".proctor") as client, open_page(browser, str(client.base_url).rstrip("/")) as page:
        page.goto("/")
        expect(page.locator("tr[data-item]")).to_have_count(1)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PROCTOR_")}
        command = [sys.executable, "-m", "proctor", "test", "suite.yaml", "-j", "1"]
        running = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            expect(page.locator("tr[data-item]")).to_have_count(2)
            expect(page.get_by_text("0 of 3 trials")).to_be_visible()
            page.locator("tr[data-item] th a").first.click()
            expect(page.get_by_role("heading", name="Running")).to_be_visible()
            (tmp_path / "one").touch()
            expect(page.get_by_text("1 of 3 trials")).to_be_visible()
            expect(page.locator("tr[data-item]")).to_have_count(1)
            (tmp_path / "two").touch()
            expect(page.get_by_text("2 of 3 trials")).to_be_visible()
        finally:
            running.kill()
            running.wait()
        expect(page.get_by_role("heading", name="Died")).to_be_visible()
        expect(page.get_by_text("The process ended early")).to_be_visible()
        page.goto("/")
        expect(page.locator(".badge", has_text="died")).to_be_visible()


def test_input_and_answer_can_be_hidden_and_stay_hidden(browser: Browser, address: str) -> None:
    with open_page(browser, address) as page:
        page.goto(f"/runs/{SECOND}")
        column = page.get_by_role("columnheader", name="Input and answer")
        expect(column).to_be_visible()
        page.get_by_role("button", name="Hide input and answer").click()
        expect(column).to_be_hidden()
        page.goto(f"/runs/{FIRST}")
        expect(column).to_be_hidden()
        page.get_by_role("button", name="Show input and answer").click()
        expect(column).to_be_visible()


def test_a_long_id_moves_no_column(browser: Browser, tmp_path: Path) -> None:
    store_run(tmp_path / "short", FIRST, [trial("a", FAILED), trial("b")])
    store_run(tmp_path / "long", FIRST, [trial("a" * 300, FAILED), trial("b")])
    places = []
    for folder in ("short", "long"):
        with serve_viewer(tmp_path / folder) as client, open_page(browser, str(client.base_url).rstrip("/")) as page:
            page.goto(f"/runs/{FIRST}")
            places.append(page.get_by_role("columnheader", name="Outcome").bounding_box()["x"])  # type: ignore[index]
    assert places[0] == places[1]
