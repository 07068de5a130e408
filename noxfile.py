"""Tests in environments other than `.venv`, and the quick check of what you changed.

    .venv/bin/nox --list
    .venv/bin/nox -s check                     # linters, types, and the tests of the packages you touched
    .venv/bin/nox -s tests-3.12                # all tests on another Python
    .venv/bin/nox -s "framework(agno)"         # one adapter with the real package
    .venv/bin/nox -t usual                     # the frameworks that `make test` has time for

An environment is made by uv, which takes a tenth of pip's time, and kept for the next call; pip is the fallback.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nox
from nox.command import CommandFailed

from proctor.agents.frameworks import shipped_adapters

HERE = Path(__file__).resolve().parent
BIN = Path(sys.executable).parent
"""Where the tools of `.venv` are: nox is one of them."""

PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
VARYING = [
    *("base", "results/store", "tracing", "running/assertions"),
    *(
        f"running/test_{name}.py"
        for name in (
            *("agent_lifecycle", "answer_times", "captured_output", "clock_jumps", "files_the_agent_reads", "hedging"),
            *("hidden_calls", "isolated_processes", "isolation", "order", "reused_agents", "scopes", "store_writer"),
            *("threads_and_loops", "timeouts", "trial_traces", "turns_a_second"),
        )
    ),
]
"""Tests of what depends on the Python: threads, event loops, SQLite, files, source code."""
ALIKE = ["base/test_masking.py", "base/test_secret_samples.py", "tracing/test_tracing_packing.py"]
"""Tests in those folders that take long and are of text and data, which are the same on every Python."""
VARYING_PROCESSES = [
    *("base/test_guard.py", "base/test_locks.py"),
    "results/store/test_migrations.py::test_a_run_that_an_earlier_version_left_is_continued_without_asking_again",
    "running/test_resume.py::test_a_run_that_is_killed_is_continued_and_asks_nothing_twice_that_was_kept",
    "running/test_interrupted_scripts.py::test_a_signal_ends_the_script_and_not_only_the_run",
    "tracing/test_instrumenting.py::test_instrumentations_are_on_only_during_a_capture",
]
"""Tests that start processes, which cost a multiple: those of signals, locks, kills and imports."""

FRAMEWORKS = {adapter.name: list(adapter.packages) for adapter in shipped_adapters()}
"""What each adapter is tested with. Some of these packages cannot be installed together."""
FRAMEWORKS["agno"].append("openai")  # its tests use a model of OpenAI's client
FRAMEWORKS["agno"] += ["litellm", "boto3", "grpcio", "requests"]  # for the exceptions of these clients
FRAMEWORKS["langchain"].append("langchain-openai")  # for the exceptions of a model
del FRAMEWORKS["pydantic_ai"]  # part of `.venv`, so its tests are among the others
USUAL = ("google_adk", "openai_agents", "langchain")

# pyenv hides the Pythons that are not activated behind a shim that fails; look into its folder as well.
_pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *map(str, sorted(_pyenv.glob("versions/3.*/bin")))])

nox.needs_version = ">=2024.4"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = ["check"]
os.environ.setdefault("UV_PYTHON_DOWNLOADS", "never")


def install(session: nox.Session, *packages: str) -> None:
    try:
        session.install("--quiet", *packages)
    except CommandFailed:  # uv does not read pip's settings, such as the address of another index
        session.run_install("python", "-m", "ensurepip", silent=True)
        session.run_install("python", "-m", "pip", "install", "--quiet", "--no-compile", *packages)


def newest_python() -> str:
    """The newest supported Python that this machine has."""
    return next((version for version in reversed(PYTHONS) if shutil.which(f"python{version}")), PYTHONS[0])


@nox.session(venv_backend="none")
def check(session: nox.Session) -> None:
    """Linters, types, and the quick tests of what changed since main: `nox -s check -- results` names a package."""
    session.run(BIN / "ruff", "check", ".", external=True)
    session.run(BIN / "ruff", "format", "--check", ".", external=True)
    session.run(BIN / "lint-imports", external=True)
    session.run(BIN / "mypy", external=True)
    folders = [f"tests/{name}" for name in session.posargs] or list(touched_tests())
    if folders:
        nothing_to_run = 5  # a folder may have tests of other tiers only
        command = (BIN / "python", "-m", "pytest", "-n", "2", "-m", "unit", *folders)
        session.run(*command, external=True, success_codes=[0, nothing_to_run])


def touched_tests() -> Iterator[str]:
    """The folders of tests/ that mirror the packages in which a file differs from the main branch."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    changed = {*_git("diff", "--name-only", base[0]), *_git("ls-files", "--others", "--exclude-standard")}
    names = {parts[2 if parts[0] == "src" else 1] for name in changed if len(parts := Path(name).parts) > 2}
    for name in sorted(names - {"support"}):
        if (HERE / "tests" / name).is_dir() and any((HERE / "tests" / name).rglob("test_*.py")):
            yield f"tests/{name}"


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """All tests on one Python."""
    install(session, "--editable", ".[dev]")
    session.run("python", "-m", "pytest", "-n", "3", *session.posargs)


@nox.session(python=newest_python())
def newest(session: nox.Session) -> None:
    """The newest Python on this machine, on what depends on it; the session `tests` runs all tests on every Python."""
    if session.python == f"{sys.version_info.major}.{sys.version_info.minor}":
        session.skip("this machine has no newer Python than the one of .venv")
    install(session, "--editable", ".[dev]")
    # The collector may complain during any later test; the tests on the default Python are strict about it.
    lenient = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
    alike = [f"--ignore=tests/{name}" for name in ALIKE]
    varying = [f"tests/{name}" for name in VARYING]
    session.run("python", "-m", "pytest", "-n", "2", *lenient, "-m", "not process", *alike, *varying)
    session.run("python", "-m", "pytest", *lenient, *(f"tests/{name}" for name in VARYING_PROCESSES))


@nox.session
@nox.parametrize(
    "name", [nox.param(name, id=name, tags=["usual"] if name in USUAL else ["large"]) for name in FRAMEWORKS]
)
def framework(session: nox.Session, name: str) -> None:
    """The adapter of a framework with the real package, and the project that `proctor init` writes for it."""
    install(session, "--editable", ".", "pytest", "hypothesis", *FRAMEWORKS[name])
    adapter = sorted(map(str, (HERE / "tests").rglob(f"frameworks/test_framework_{name}*.py")))
    session.run("python", "-m", "pytest", *adapter)
    session.run(
        "python", "-m", "pytest", "tests/cli/test_cli_init.py", "-k", f"passes and {name} or template_of_{name}"
    )
    if name == "langchain":
        session.run("python", "-m", "pytest", "tests/docs/test_docs.py", "-k", "frameworks")


OTHER_FRAMEWORKS = {
    "autogen": ["autogen-agentchat", "autogen-ext[openai]"],
    "agent_framework": ["agent-framework-core", "agent-framework-openai"],
    "haystack": ["haystack-ai"],
    "crewai": ["crewai"],
    "strands": ["strands-agents[openai]"],
    "dspy": ["dspy"],
}
"""The packages of frameworks without an adapter, of which docs/other-frameworks.md has an example each."""


@nox.session
@nox.parametrize("name", [nox.param(name, id=name, tags=["large"]) for name in OTHER_FRAMEWORKS])
def other_framework(session: nox.Session, name: str) -> None:
    """The example of a framework without an adapter, with the real package."""
    install(session, "--editable", ".", "pytest", "hypothesis", *OTHER_FRAMEWORKS[name])
    environment = {"PROCTOR_OTHER_FRAMEWORK": name}
    session.run("python", "-m", "pytest", "tests/docs/test_other_frameworks.py", "-rs", env=environment)


STANDARD_LIBRARY = "asgi asyncio dbapi logging sqlite3 system-metrics threading urllib wsgi".split()
"""What OpenTelemetry has instrumentations for in the standard library, and its web interfaces."""
CLIENTS = "openai anthropic google-genai litellm mistralai groq cohere ollama boto3".split()


@nox.session(tags=["large"])
@nox.parametrize("observed", [nox.param(False, id="without"), nox.param(True, id="with")])
def instrumentation(session: nox.Session, observed: bool) -> None:
    """All instrumentation at once, and the clients of models with and without theirs."""
    packages = [f"opentelemetry-instrumentation-{name}" for name in STANDARD_LIBRARY]
    packages += ["sentry-sdk", "ddtrace", "distributed", *CLIENTS, "mcp"]  # litellm imports mcp
    if observed:
        names = ("openai", "anthropic", "google-genai", "litellm", "groq", "bedrock")
        packages += [f"openinference-instrumentation-{name}" for name in names]
    install(session, "--editable", ".[tracing]", "pytest", "hypothesis", *packages)
    tests = ("tests/tracing/test_other_instrumentation.py", "tests/tracing/test_model_clients.py")
    session.run("python", "-m", "pytest", *tests)


@nox.session(venv_backend="none", tags=["large"])
def typescript(session: nox.Session) -> None:
    """The template adk_ts with the real packages from npm, in `.typescript/`, and its page of the documentation."""
    session.run(BIN / "python", "-m", "typescript_cases", env={"PYTHONPATH": "scripts"}, external=True)
    environment = {"PROCTOR_NPM": "1", "PROCTOR_TYPESCRIPT": str(HERE / ".typescript")}
    tests = ("tests/compat/adk/test_typescript_project.py", "tests/docs/test_docs.py")
    session.run(BIN / "python", "-m", "pytest", *tests, "-k", "typescript", env=environment, external=True)


@nox.session(venv_backend="none")
def browser(session: nox.Session) -> None:
    """Chromium and axe-core for the tests of the viewer; without them those tests are skipped, or fail if CI=true."""
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        if shutil.which("apt-get") and os.geteuid() == 0:
            session.run("apt-get", "update", "-qq", external=True, silent=True, success_codes=range(256))
            packages = ("chromium", "fonts-dejavu-core")
            session.run(
                *("apt-get", "install", "-y", "-qq", "--no-install-recommends"), *packages,
                external=True, silent=True, success_codes=range(256),
            )  # fmt: skip
        else:
            session.warn("the tests in a browser need Chromium: apt-get install chromium")
    if not (HERE / ".browser" / "node_modules" / "axe-core").is_dir():
        if shutil.which("npm"):
            (HERE / ".browser").mkdir(exist_ok=True)
            quiet = ("--silent", "--no-audit", "--no-fund", "--prefix", ".browser")
            session.run("npm", "install", *quiet, "axe-core@4", external=True, silent=True, success_codes=range(256))
        else:
            session.warn("the accessibility tests need axe-core: npm install --prefix .browser axe-core")
