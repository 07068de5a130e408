"""The pytest plugin of this test suite: its fixtures, and the tier that each test belongs to.

A test without a marker starts no process and opens no socket but on loopback, so that `pytest tests/results -m unit`
takes seconds. The other tiers are markers:

    process    starts processes of its own: commands, workers, shells, Pythons that are killed
    docs       types the examples of the documentation into a shell
    browser    opens pages in Chromium
    framework  runs with the real package of an agent framework

A test is in `process` if it uses `proctor_process`, if it is in tests/attack or tests/running/cluster, or if it says so
itself with `@pytest.mark.process`. An unmarked test that starts Python anyway is listed at the end of the run.

A test outside tests/compat/NAME that uses one of the tools in `proctor.plugins.SHIPPED` says so with
`@pytest.mark.needs("holodeck")`. Without that tool it is deselected, and the summary says how many were; see
scripts/without_tool.py.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from command_line import SETTINGS, CommandResult, run_proctor
from scripted_model import model_server as serve_model

from proctor.base.open_checks import OpenCheck, collect_open_checks
from proctor.cli import main
from proctor.plugins import SHIPPED

TESTS = Path(__file__).resolve().parents[1]
FOLDERS = {
    "attack": "process",
    "running/cluster": "process",
    "docs": "docs",
    "agents/frameworks": "framework",
    "compat/adk/frameworks": "framework",
    "compat/holodeck/frameworks": "framework",
    "viewer/test_viewer_browser.py": "browser",
}
TIERS = ("process", "docs", "browser", "framework")
TOOLS = {module.split(".")[-2] for module in SHIPPED}
"""The tools in this copy of Proctor, by the names of their folders."""

AGENTS = """
import time


def echo(question):
    return question


def noisy(question):
    print("the agent prints")
    return question


def raises(question):
    raise ValueError("the agent has a bug")


def hangs(question):
    time.sleep(3600)


def wrong(question):
    return object()


def huge(question):
    return "x" * 10_000_000


def surrogate(question):
    return "half a pair: \\ud800"


def unicode(question):
    return "naïve — 東京"
"""

CHECKS = """
import time


def good(evaluable):
    return 1.0


def bad(evaluable):
    return 0.0


def raises(evaluable):
    raise ValueError("the check has a bug")


def nan(evaluable):
    return float("nan")


def seven(evaluable):
    return 7


def hangs(evaluable):
    time.sleep(3600)


def words(evaluable):
    return "very good"


def pending(evaluable):
    from proctor import EvaluationPending

    raise EvaluationPending("a person has to look")
"""


MIN_FREE_BYTES = 4_000_000_000
"""Bytes that must be free in memory before the tests keep their files there."""


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the processes of pytest-xdist inherit it
        keep_files_in_memory(config)
    for tier in TIERS:
        config.addinivalue_line("markers", f"{tier}: a tier of the tests; see tests/support/support_plugin.py")
    config.addinivalue_line("markers", "unit: what is in no other tier; never written, always derived")
    config.addinivalue_line("markers", "needs(*tools): tools of `proctor.plugins.SHIPPED` that the test uses")


def keep_files_in_memory(config: pytest.Config) -> None:
    """Put the temporary files of all tests on /dev/shm: waiting for the disk at every stored run took half the time.

    To look at the files of a failed test, set TMPDIR or `--basetemp`.
    """
    memory = Path("/dev/shm")
    if "TMPDIR" in os.environ or config.option.basetemp or not os.access(memory, os.W_OK):
        return
    if shutil.disk_usage(memory).free < MIN_FREE_BYTES:
        return
    folder = Path(tempfile.mkdtemp(prefix="proctor-tests.", dir=memory))
    folder.chmod(0o1777)  # as /tmp: some tests look at a store as another user
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(tryfirst=True)  # before `-m` selects
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    _deselect_tests_of_missing_tools(config, items)
    for item in items:
        place = item.path.relative_to(TESTS).as_posix() if item.path.is_relative_to(TESTS) else ""
        for folder, tier in FOLDERS.items():
            if place.startswith(folder):
                item.add_marker(tier)
        if "proctor_process" in getattr(item, "fixturenames", ()):
            item.add_marker("process")
        if not any(item.get_closest_marker(tier) for tier in TIERS):
            item.add_marker("unit")


DESELECTED = "tests that need a tool that is not shipped"
_deselected = pytest.StashKey[int]()


def _deselect_tests_of_missing_tools(config: pytest.Config, items: list[pytest.Item]) -> None:
    missing = [item for item in items if any(set(mark.args) - TOOLS for mark in item.iter_markers("needs"))]
    if missing:
        config.hook.pytest_deselected(items=missing)
        items[:] = [item for item in items if item not in set(missing)]
    config.stash[_deselected] = len(missing)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a process of pytest-xdist, which reports no deselected tests
        session.config.workeroutput[DESELECTED] = session.config.stash.get(_deselected, 0)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_testnodedown(node: Any) -> None:
    output = getattr(node, "workeroutput", {})  # every process collects the same tests
    node.config.stash[_deselected] = max(node.config.stash.get(_deselected, 0), output.get(DESELECTED, 0))


_unmarked: list[pytest.Item] = []
"""The test that runs now, if it has no tier: it should start no process."""


def _notice_process(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "subprocess.Popen" and _unmarked and str(arguments[0]).endswith(("python", "python3", "sh")):
        _unmarked[0].user_properties.append(("started", str(arguments[0])))


sys.addaudithook(_notice_process)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if item.get_closest_marker("unit"):
        _unmarked.append(item)
    try:
        return (yield)
    finally:
        _unmarked.clear()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if deselected := config.stash.get(_deselected, 0):
        terminalreporter.write_line(f"{deselected} {DESELECTED} were deselected")
    reports = terminalreporter.getreports("passed")
    started = sorted(
        {report.nodeid for report in reports if any(name == "started" for name, _ in report.user_properties)}
    )
    if started:
        terminalreporter.section("tests that start processes and are not marked `process`")
        for name in started:
            terminalreporter.write_line(name)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder of a test, with agents and checks to name and none of the user's settings."""
    for name in list(os.environ):
        if name.startswith(SETTINGS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "agents.py").write_text(AGENTS, encoding="utf-8")
    (tmp_path / "checks.py").write_text(CHECKS, encoding="utf-8")
    return tmp_path


@pytest.fixture
def proctor(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., CommandResult]:
    """Run the command in this process: `proctor("test", "suite.yaml").code`."""

    def run(*arguments: object) -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["proctor", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return CommandResult(int(ended.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def proctor_process(project: Path) -> Callable[..., CommandResult]:
    """Run the command as a process of its own; keywords beside those of `run_proctor` are environment variables."""

    def run(
        *arguments: object,
        timeout: float = 300,
        memory: int | None = None,
        stdin: str = "",
        **more: str,
    ) -> CommandResult:
        environment = {**os.environ, **more}
        return run_proctor(
            *arguments, cwd=project, timeout=timeout, memory=memory, stdin=stdin, environment=environment
        )

    return run


@pytest.fixture
def open_checks() -> Iterator[list[OpenCheck]]:
    """The pending checks of a test, which without this fixture would leave the test itself pending."""
    with collect_open_checks() as checks:
        yield checks


@pytest.fixture
def model_server() -> Callable[..., AbstractContextManager[Any]]:
    """A model on loopback that says what a function of the conversation returns; see `scripted_model.py`."""
    return serve_model
