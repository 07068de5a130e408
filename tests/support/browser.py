"""A real browser for the tests of the viewer: Debian's Chromium, which complains about everything it does not like."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from repository import ROOT
from served_viewer import ACCESS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

AXE = ROOT / ".browser" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
NAMES = ("chromium", "chromium-browser", "google-chrome")


def require(found: Any, what: str) -> Any:
    """What a test needs; without it the test is skipped, but never in CI."""
    if not found:
        text = f"{what} is missing: run `make browser`"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)
    return found


@contextmanager
def open_browser() -> Iterator[Browser]:
    path = require(next(filter(None, map(shutil.which, NAMES)), None), "Chromium")
    playwright = pytest.importorskip("playwright.sync_api") if os.environ.get("CI") != "true" else _playwright()
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()


def _playwright() -> Any:
    from playwright import sync_api

    return sync_api


@contextmanager
def open_page(browser: Browser, base: str, **options: Any) -> Iterator[Page]:
    """A page in a fresh profile; an error in the console or a request to elsewhere fails the test."""
    _playwright().expect.set_options(timeout=20_000)
    context = browser.new_context(base_url=base, **options)
    if base.startswith("http"):
        context.add_cookies([{"name": ACCESS.cookie, "value": ACCESS.token, "url": base}])
    complaints: list[str] = []
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(f"a script said {dialog.message}"))
    page.on("request", lambda request: _check_host(request.url, base, complaints))
    try:
        yield page
    finally:
        context.close()
    assert complaints == []


def _check_host(address: str, base: str, complaints: list[str]) -> None:
    parts = urlsplit(address)
    if parts.scheme not in ("data", "blob") and parts.netloc != urlsplit(base).netloc:
        complaints.append(f"a request to {address}")


def accessibility_problems(page: Page) -> list[str]:
    """What axe finds wrong, each with where."""
    source = require(AXE.is_file() and AXE.read_text(encoding="utf-8"), "axe-core")
    page.evaluate(f"{source}\n;0")  # through the debugger, which the page's policy does not concern
    found = page.evaluate(
        "async (rules) => (await axe.run(document, {runOnly: {type: 'tag', values: rules}})).violations"
        ".map(v => `${v.id}: ${v.help} (${v.nodes.map(n => n.target.join(' ')).slice(0, 4).join('; ')})`)",
        RULES,
    )
    return list(found)
