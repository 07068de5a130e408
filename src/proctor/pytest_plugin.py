"""The pytest plugin: suites are collected like tests, and fixtures run agents in ordinary tests.

pytest loads it in every run of an environment in which Proctor is installed, even if no agent is tested. Those runs
must not become slower, so each hook and fixture here imports its modules when it is called. Besides the small part that
watches for pending checks, nothing of Proctor is imported until a suite is collected or a fixture is used.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.plugin.pending_tests import MODES, PendingTests

if TYPE_CHECKING:
    from collections.abc import Callable

    from proctor.plugin.collection import SuiteFile
    from proctor.plugin.fixtures import CaseDisplay, EvaluationDataset
    from proctor.results.run import Run
    from proctor.running.assertions.agent_runner import AgentRunner

ENDINGS = (".json", ".yaml", ".yml", ".jsonl", ".ndjson", ".csv")
ALIAS_NOTES = pytest.StashKey[list[str]]()
MARKERS = (
    "proctor(mode, suites): mode is full (needs a language model) or quick; suites are run by evaluation_dataset.",
    "proctor_full: needs a language model; skipped with --proctor-fast.",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("proctor", "AI agent tests")
    group.addoption(
        "--proctor-agent",
        metavar="REF",
        help="Agent to test, overriding the suites': file.py:name, a URL or cmd:...",
    )
    group.addoption(
        "--proctor-judge",
        metavar="MODEL",
        help="LLM judge, e.g. openai:gpt-5-mini, or rules (default: rule-based, no model).",
    )
    group.addoption(
        "--proctor-fast",
        action="store_true",
        help="Skip tests, evaluators and simulated users that need a language model.",
    )
    group.addoption(
        "--proctor-reuse",
        action="store_true",
        help="Reuse stored outputs of earlier sessions where agent and input are unchanged.",
    )
    group.addoption("--proctor-store", metavar="DIR", help="Folder for results (default: .proctor).")
    group.addoption(
        "--proctor-pending",
        choices=MODES,
        help="What a test is that needs a model or a person to decide: fail (default) or skip.",
    )
    parser.addini("proctor_agent", "Agent for agent_runner and for suites without one.")
    parser.addini("proctor_suites", "Patterns of additional files to collect as suites.", type="args")
    parser.addini("proctor_reuse", "Always use --proctor-reuse.", type="bool", default=False)
    parser.addini("proctor_pending", "The default of --proctor-pending: fail or skip.", default="fail")
    parser.addini("proctor_dataset", "Suites for the fixture evaluation_dataset.", type="args")
    parser.addini("proctor_aliases", "Packages that Proctor replaces: deepeval, pixie, holodeck.", type="args")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Install aliases before any conftest.py is imported, which may import an aliased package."""
    _install_aliases(early_config)


def _install_aliases(config: pytest.Config) -> None:
    if ALIAS_NOTES in config.stash:
        return
    config.stash[ALIAS_NOTES] = []
    aliases = config.getini("proctor_aliases")
    if not aliases and not os.environ.get("PROCTOR_ALIASES") and not _mentions_aliases(config.rootpath):
        return
    from proctor.base.errors import UsageError
    from proctor.config import configured_aliases

    try:
        config.stash[ALIAS_NOTES] += configured_aliases(config.rootpath, aliases)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None


def _mentions_aliases(root: Path) -> bool:
    """Whether a project file may have aliases; it is parsed only then."""
    files = (folder / name for folder in (root, *root.parents) for name in ("proctor.toml", "pyproject.toml"))
    return any(path.is_file() and b"aliases" in path.read_bytes() for path in files)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [f"proctor: {note}" for note in config.stash.get(ALIAS_NOTES, [])]


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Print the notes of the header with `-q` too, which has no header."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and session.config.getoption("verbose") < 0:
        for line in pytest_report_header(session.config):
            reporter.write_line(line)


def pytest_configure(config: pytest.Config) -> None:
    _install_aliases(config)
    config.pluginmanager.register(PendingTests(config), "proctor-pending")
    for line in MARKERS:
        config.addinivalue_line("markers", line)
    judge = config.getoption("proctor_judge")
    if judge:
        _set_variable(config, "PROCTOR_JUDGE", judge)
    if config.getoption("proctor_fast"):
        _set_variable(config, "PROCTOR_FAST", "1")


def _set_variable(config: pytest.Config, name: str, value: str) -> None:
    """Set an environment variable for evaluators that tests call directly; restored when the session ends."""
    before = os.environ.get(name)
    os.environ[name] = value
    config.add_cleanup(lambda: _restore(name, before))


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    if not file_path.name.endswith(ENDINGS):
        return None
    from proctor.plugin.startup import is_suite, named_files

    config = parent.config
    named = file_path in named_files(config)
    if not is_suite(file_path, config.rootpath, config.getini("proctor_suites"), named=named):
        return None
    from proctor.plugin.collection import SuiteFile

    suite: SuiteFile = SuiteFile.from_parent(parent, path=file_path)
    return suite


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> pytest.Collector | None:
    """Collect `test_shop = Suite(...)` in a test module, with one item per trial."""
    kind = type(obj)
    if kind.__module__ != "proctor.cases.suite" or kind.__name__ != "Suite":
        return None
    from proctor.plugin.collection import collect_suite

    return collect_suite(collector, name, obj)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("proctor_fast"):
        reason = pytest.mark.skip(reason="needs a language model (--proctor-fast)")
        for item in items:
            if _needs_model(item):
                item.add_marker(reason)


def _needs_model(item: pytest.Item) -> bool:
    marker = item.get_closest_marker("proctor")
    mode = None if marker is None else marker.kwargs.get("mode")
    if mode not in (None, "full", "quick"):
        raise pytest.UsageError(f"{item.nodeid}: proctor(mode={mode!r}): mode is 'full' or 'quick'")
    return mode == "full" or (mode is None and item.get_closest_marker("proctor_full") is not None)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """A hook of pytest-xdist: let all processes share one run."""
    from proctor.plugin.startup import shared_session_data

    node.workerinput["proctor"] = shared_session_data(node.config)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """A hook of pytest-xdist: take the summary of a process that has ended."""
    summary = getattr(node, "workeroutput", {}).get("proctor")
    if summary is not None:
        from proctor.plugin.session import session_of

        session_of(node.config).receive_summary(summary)


@pytest.fixture(scope="session")
def agent_runner(request: pytest.FixtureRequest) -> AgentRunner:
    """Runs the configured agent: agent_runner.run_test_case("a question").tools_called"""
    from proctor.plugin.fixtures import agent_runner

    return agent_runner(request.config)


@pytest.fixture(scope="module")
def evaluation_cases(request: pytest.FixtureRequest) -> Any:
    """The cases of evaluation_dataset: TEST_CASES of the module, unless a marker or the ini file names suites."""
    from proctor.plugin.fixtures import evaluation_cases

    return evaluation_cases(request)


@pytest.fixture(scope="module")
def evaluation_dataset(request: pytest.FixtureRequest, evaluation_cases: Any) -> EvaluationDataset:
    """The runs of all cases of evaluation_cases; each is run once per session."""
    from proctor.plugin.fixtures import evaluation_dataset

    return evaluation_dataset(request, evaluation_cases)


@pytest.fixture(scope="module")
def proctor_run(request: pytest.FixtureRequest) -> Callable[..., Run]:
    """Runs a suite once per session: proctor_run("faq.test.json", case="refund").assert_passed()"""

    def run(suite: Any, *, case: str | None = None, agent: Any = None) -> Run:
        from proctor.plugin.fixtures import proctor_run

        return proctor_run(request.config, request.path, suite, case, agent)

    return run


@pytest.fixture(scope="session")
def show_case() -> CaseDisplay:
    """Prints the tool calls of a run with arguments and results: show_case(evaluation_dataset[0])"""
    from proctor.plugin.fixtures import CaseDisplay

    return CaseDisplay()
