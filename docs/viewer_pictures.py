"""Makes the pictures of the viewer's pages, and the film strip of the README, from real runs of the example.

python docs/viewer_pictures.py docs/viewer      needs Chromium, which `make browser` gets
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "loan_advisor"
RUNS = (
    ("first", "agent.py:agent"),
    ("second", "agent.py:agent"),
    ("percent bug", "agent_wrong.py:agent"),
    ("fixed", "agent.py:agent"),
    ("nightly", "flaky.py:agent"),
)
FLAKY = '''"""The example's agent, which now and then reads percent wrong."""

import hashlib
import itertools

import agent as right
import agent_wrong as wrong

asked = itertools.count()


def agent(question, state):
    chosen = hashlib.sha256(f"{next(asked)}".encode()).digest()[0]
    return (wrong.agent if chosen < 40 else right.agent)(question, state)
'''
TONE = '''"""A score that only a person can give."""

from proctor import create_agent_evaluator

tone = create_agent_evaluator("Tone", "Is the answer friendly, and free of promises that a bank could not keep?")
'''
SUITE = """name: tone
agent: agent.py:agent
evaluators: ["tone.py:tone"]
cases:
  - {id: payment, input: "Calculate the monthly payment for a $50,000 loan at 5% interest over 36 months."}
  - {id: greeting, input: "Hello, can you help me with a loan?"}
"""
WIDE = {"width": 1240, "height": 760}
PHONE = {"width": 400, "height": 780}


def main(target: Path) -> None:
    from playwright.sync_api import sync_playwright

    target.mkdir(parents=True, exist_ok=True)
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with tempfile.TemporaryDirectory() as work, sync_playwright() as driver:
        folder = Path(work) / "loan_advisor"
        shutil.copytree(EXAMPLE, folder)
        ids = _runs(folder)
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with _viewer(folder) as base:
            for name, place, options in _pages(ids):
                _picture(browser, base, place, target / f"{name}.png", options)
        browser.close()


def _runs(folder: Path) -> dict[str, str]:
    """The runs in the order of time; their ids by name."""
    (folder / "flaky.py").write_text(FLAKY, encoding="utf-8")
    (folder / "tone.py").write_text(TONE, encoding="utf-8")
    (folder / "tone.yaml").write_text(SUITE, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PROCTOR_")}
    for name, agent in RUNS:
        _proctor(folder, environment, "test", "suite.yaml", "--agent", agent, "--repeat", "5", "--name", name)
    _proctor(folder, environment, "test", "tone.yaml", "--name", "tone")
    listed = subprocess.run(
        [sys.executable, "-m", "proctor", "runs"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r"^(\S+) .* \[(.+)\]$", listed.stdout, re.MULTILINE)
    return {name: run for run, name in found}


def _proctor(folder: Path, environment: dict[str, str], *words: str) -> None:
    subprocess.run([sys.executable, "-m", "proctor", *words, "-q"], cwd=folder, env=environment, check=False)


def _pages(ids: dict[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    run, bug, right, tone = (ids[name] for name in ("nightly", "percent bug", "second", "tone"))
    case = f"/runs/{bug}/case?suite=loan+advisor&case=payment-basic"
    yield "runs", "/", {}
    yield "run", f"/runs/{run}", {}
    yield "run-dark", f"/runs/{run}", {"color_scheme": "dark"}
    yield "run-phone", f"/runs/{run}", {"viewport": PHONE}
    yield "case", case, {}
    yield "case-trace", f"/runs/{bug}/case?suite=loan+advisor&case=follow-up#trace", {}
    yield "compare", f"/compare?a={right}&b={bug}", {}
    yield "compare-case", f"/compare?a={right}&b={bug}&suite=loan+advisor&case=payment-basic", {}
    yield "grade", f"/runs/{tone}/grade", {}


@contextmanager
def _viewer(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "proctor", "view", "--no-open"]
    environment = {**os.environ, "LOGNAME": "ada"}
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True, env=environment)
    try:
        found = re.search(r"http://\S+", server.stdout.readline() if server.stdout else "")
        if found is None:
            raise SystemExit("proctor view did not start")
        yield found.group()
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def _picture(browser: Any, address: str, place: str, path: Path, options: dict[str, Any]) -> None:
    """Save a picture of a page; `address` is the one that the viewer printed, with the token."""
    base = address.partition("/?")[0]
    context = browser.new_context(base_url=base, timezone_id="UTC", locale="en-GB", **{"viewport": WIDE, **options})
    page = context.new_page()
    page.goto(address)
    page.goto(place)
    page.wait_for_selector("html.ready", state="attached")
    page.screenshot(path=path)
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
