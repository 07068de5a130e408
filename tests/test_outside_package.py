"""A package that is not ours: installed beside Proctor, it brings everything that a plugin can through one entry point.

The package is in `outside_package/`. It is installed as pip leaves it, a folder of modules and a `.dist-info` folder,
written here from its `pyproject.toml` so that the tests need no build tool.
"""

from __future__ import annotations

import json
import shutil
import textwrap
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import CommandResult

Command = Callable[..., CommandResult]

PACKAGE = Path(__file__).parent / "outside_package"
DIALOGUES = {
    "agent": {"acme": {"greeting": "Hello"}},
    "dialogues": [
        {"title": "short", "ask": "Is it open?", "checks": [{"Brevity": {"words": 4}}]},
        {"title": "long", "ask": "Is it open on Sundays and on holidays?", "checks": [{"Brevity": {"words": 4}}]},
    ],
}

pytestmark = pytest.mark.process


def install(package: Path, target: Path) -> None:
    """Install a package of Python modules into a folder, as `pip install --no-deps --target` does."""
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.copytree(package, target, ignore=shutil.ignore_patterns("pyproject.toml", "__pycache__"), dirs_exist_ok=True)
    folder = target / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n", encoding="utf-8"
    )
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (folder / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """The folder that packages are installed into."""
    folder = tmp_path / "packages"
    folder.mkdir()
    return folder


@pytest.fixture
def proctor_with(proctor_process: Command, packages: Path) -> Command:
    """The command line with what is installed."""
    return lambda *arguments: proctor_process(*arguments, PYTHONPATH=str(packages))


@pytest.fixture
def acme(proctor_with: Command, packages: Path) -> Command:
    """The command line with Acme's package installed."""
    install(PACKAGE, packages)
    return proctor_with


def _write(path: Path, data: object) -> Path:
    path.write_text(json.dumps(data, indent=1), encoding="utf-8")
    return path


def _source(folder: Path, modules: dict[str, str], entry: str, group: str = "proctor.plugins") -> Path:
    """The source of a package with one entry point, which is called like the package."""
    package = entry.partition(":")[0]
    for name, text in modules.items():
        path = folder / package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    (folder / "pyproject.toml").write_text(
        f'[project]\nname = "{package}"\nversion = "1"\n[project.entry-points."{group}"]\n{package} = "{entry}"\n',
        encoding="utf-8",
    )
    return folder


def test_a_file_of_its_format_runs_its_agent_and_its_evaluator_and_writes_its_report(
    acme: Command, project: Path
) -> None:
    _write(project / "dialogues.acme.json", DIALOGUES)

    done = acme("test", "dialogues.acme.json", "--report", "acme=sheet.txt", "--json", "report.json")

    assert done.code == 1, done.out + done.err
    assert (project / "sheet.txt").read_text() == "ACME SCORE SHEET\nshort: passed\nlong: failed\n"
    assert "Hello! Is it open?" in (project / "report.json").read_text()


def test_the_ending_of_a_file_selects_its_report(acme: Command, project: Path) -> None:
    _write(project / "dialogues.acme.json", DIALOGUES)

    acme("test", "dialogues.acme.json", "--report", "sheet.txt")

    assert (project / "sheet.txt").read_text().startswith("ACME SCORE SHEET")


def test_its_agent_and_its_evaluator_are_named_in_a_suite_of_proctors_own(acme: Command, project: Path) -> None:
    (project / "suite.yaml").write_text(
        "agent: {acme: {greeting: Good morning}}\n"
        "evaluators: [Brevity]\n"
        "cases:\n  - {id: greets, input: friend, expected: 'Good morning! friend'}\n",
        encoding="utf-8",
    )

    done = acme("test", "suite.yaml")

    assert done.code == 0, done.out + done.err


def test_its_agent_is_described_on_the_command_line(acme: Command, project: Path) -> None:
    _write(project / "dialogues.json", {**DIALOGUES, "agent": "agents.py:raises"})

    done = acme("test", "dialogues.json", "--agent", '{"acme": {"greeting": "Hi"}}', "-k", "short")

    assert done.code == 0, done.out + done.err


def test_what_is_wrong_with_its_agent_is_reported_with_file_and_line(acme: Command, project: Path) -> None:
    (project / "suite.yaml").write_text(
        "cases: [{id: a, input: hi, expected: hi}]\nagent:\n  acme: {greting: Hi}\n", encoding="utf-8"
    )

    done = acme("test", "suite.yaml")

    assert done.code == 2
    assert "suite.yaml:2" in done.err and "needs a 'greeting'" in done.err


def test_a_wrong_evaluator_in_a_file_of_its_format_is_reported_with_file_and_line(acme: Command, project: Path) -> None:
    dialogue = {"title": "short", "ask": "Is it open?", "checks": ["Brevety"]}
    path = _write(project / "dialogues.acme.json", {**DIALOGUES, "dialogues": [dialogue]})
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if "Brevety" in text)

    done = acme("test", "dialogues.acme.json")

    assert done.code == 2
    assert f"dialogues.acme.json:{line}: " in done.err and "Brevety" in done.err


def test_it_is_listed_with_what_it_brings(acme: Command) -> None:
    assert "Acme's dialogue files" in acme("list", "formats").out
    assert "Brevity" in acme("list", "evaluators").out
    assert "The answer has few words." in acme("list", "evaluators", "Brevity").out
    assert "agent: {acme: {greeting: Hello}}" in acme("list", "agents").out
    assert "agent: {acme: {greeting: Hello}}" in [
        row["example"] for row in json.loads(acme("list", "agents", "--json").out)["agents"]
    ]


def test_its_command_is_called_and_listed(acme: Command) -> None:
    assert acme("acme-hello", "--name", "Ada").out == "Acme says hello to Ada\n"
    assert "acme-hello" in acme("--help").out


@pytest.mark.parametrize(
    ("modules", "entry", "message"),
    [
        ({"__init__.py": "import no_such_module_x"}, "broken_proctor:PLUGIN", "No module named 'no_such_module_x'"),
        ({"__init__.py": "PLUGIN = 3"}, "broken_proctor:PLUGIN", "is not a proctor.plugins.Plugin"),
        ({"__init__.py": ""}, "broken_proctor:PLUGIN", "has no attribute 'PLUGIN'"),
    ],
)
def test_a_broken_plugin_is_reported_in_one_sentence(
    proctor_with: Command, packages: Path, tmp_path: Path, modules: dict[str, str], entry: str, message: str
) -> None:
    install(_source(tmp_path / "source", modules, entry), packages)

    done = proctor_with("list", "formats")

    assert done.code == 2
    [line] = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert "the plugin 'broken_proctor' (broken_proctor:PLUGIN)" in line and message in line


def test_a_broken_plugin_stops_no_suite_that_does_not_use_it(
    proctor_with: Command, packages: Path, tmp_path: Path, project: Path
) -> None:
    install(_source(tmp_path / "source", {"__init__.py": "import no_such_module_x"}, "broken_proctor:PLUGIN"), packages)
    (project / "suite.yaml").write_text(
        "agent: agents.py:echo\ncases: [{id: a, input: hi, expected: hi}]\n", encoding="utf-8"
    )

    done = proctor_with("test", "suite.yaml")

    assert done.code == 0, done.out + done.err


PARTLY_BROKEN = """
    from proctor.plugins import AgentKind, Command, Format, Plugin, Reporter

    GONE = "broken_proctor.gone:thing"
    PLUGIN = Plugin(
        name="broken",
        formats=[Format(name="broken", summary="x", recognises=lambda path, data: "rows" in data, read=GONE)],
        agents=[AgentKind(key="broken", build=GONE, example="")],
        evaluators={"Gone": GONE},
        reporters=[Reporter(name="broken", help="", write=GONE)],
        commands=[Command(name="broken-hello", help="", target=GONE)],
    )
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("test", "rows.json"),
        ("test", "suite.yaml", "--agent", '{"broken": {}}'),
        ("test", "suite.yaml", "-e", "Gone"),
        ("test", "suite.yaml", "--report", "broken=x.txt"),
        ("broken-hello",),
    ],
    ids=["format", "agent", "evaluator", "report", "command"],
)
def test_a_part_that_cannot_be_imported_is_reported_in_one_sentence(
    proctor_with: Command, packages: Path, tmp_path: Path, project: Path, arguments: tuple[str, ...]
) -> None:
    install(_source(tmp_path / "source", {"__init__.py": PARTLY_BROKEN}, "broken_proctor:PLUGIN"), packages)
    (project / "suite.yaml").write_text(
        "agent: agents.py:echo\ncases: [{id: a, input: hi, expected: hi}]\n", encoding="utf-8"
    )
    _write(project / "rows.json", {"rows": []})

    done = proctor_with(*arguments)

    assert done.code in (2, 4), done.out + done.err
    [line] = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert "broken_proctor.gone" in line and "could not be loaded" in line


def test_an_adapter_in_the_older_group_is_a_plugin_too(
    proctor_with: Command, packages: Path, tmp_path: Path, project: Path
) -> None:
    text = """
        from proctor.agents.control_agents import OracleAgent

        def find(reference, base):
            return OracleAgent() if reference == "acme://x" else None
    """
    install(_source(tmp_path / "source", {"__init__.py": text}, "older_proctor:find", "proctor.agents"), packages)
    (project / "suite.yaml").write_text(
        "agent: acme://x\ncases: [{id: a, input: hi, expected: hello}]\n", encoding="utf-8"
    )

    done = proctor_with("test", "suite.yaml")

    assert done.code == 0, done.out + done.err
    assert "older_proctor  from an installed package" in proctor_with("list", "agents").out
