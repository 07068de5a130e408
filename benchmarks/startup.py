"""The cost of starting: `proctor --help`, one case in each format, and the pytest plugin in a session that does not use
it. The CPU time of `python -c pass` and of pytest without the plugin are next to it.

Measured with the base install and nothing else, everything compiled and in the file cache.
"""

from __future__ import annotations

from pathlib import Path

from cases import write_one_case_files
from environments import Interpreter
from measuring import Contender, clean_environment, compare
from table import Row

NOTHING = "python -c pass"
FORMATS_WITH_AGENT = ("native YAML", "pixie JSON")


def measure_startup(proctor: Interpreter, pytest: Interpreter, folder: Path, rounds: int) -> list[Row]:
    command, environment = proctor.script("proctor"), clean_environment()
    contenders = [
        Contender(NOTHING, [str(proctor.python), "-c", "pass"], folder, environment),
        Contender("proctor --help", [*command, "--help"], folder, environment),
    ]
    for title, path in write_one_case_files(folder).items():
        agent = [] if title in FORMATS_WITH_AGENT else ["--agent", "agents.py:echo"]
        contenders.append(Contender(f"one case, {title}", [*command, "test", path.name, *agent], folder, environment))
    costs = compare(contenders, rounds)
    nothing = costs.pop(NOTHING).cpu
    rows = [Row(f"- {name}", f"{cost.cpu:.2f} s, {cost.cpu / nothing:.1f}x {NOTHING}") for name, cost in costs.items()]
    return [*rows, _unused_plugin(pytest, folder, rounds)]


def _unused_plugin(pytest: Interpreter, folder: Path, rounds: int) -> Row:
    """What the plugin adds to a session of one trivial test, in a folder without suites."""
    folder = folder / "without_suites"
    folder.mkdir()
    (folder / "test_nothing.py").write_text("def test_nothing():\n    pass\n", encoding="utf-8")
    command = [*pytest.module("pytest"), "-q", "test_nothing.py"]
    variants = {"with": command, "without": [*command, "-p", "no:proctor"]}
    costs = compare([Contender(name, it, folder, clean_environment()) for name, it in variants.items()], rounds)
    added = 1000 * (costs["with"].cpu - costs["without"].cpu)
    return Row("- pytest plugin, unused", f"{added:+.0f} ms of {1000 * costs['without'].cpu:.0f} ms")
