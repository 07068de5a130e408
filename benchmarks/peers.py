"""Compares Proctor with other tools on the same trivial cases, in one run.

Every contender gets an agent that echoes, an exact comparison and an edit distance, and stores its results on disk. It
runs one case, which measures the start, and many. Two ratios have limits: the time of one case from start, and the
CPU time per case of many with start-up included. The cost of one more case is shown, but has no limit: it is the
difference of two measurements, and small.

Peers take as long as they take; the slowest needs minutes for 2,000 cases. A peer that cannot be installed, or fails,
has a row that says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cases import pixie_dataset, question, write_jsonl
from environments import HERE, PEERS, Interpreter, installed_version, node_peer, node_version, peer
from install_size import InstallSize, installed_by_npm, installed_by_pip
from limits import MANY_CASES, ONE_CASE
from measuring import Contender, ContenderFailed, Cost, clean_environment, compare
from table import Row, at_most, below

PROMPTFOO = "promptfoo"
NAMES = (*PEERS, PROMPTFOO)
QUIET = {"PIXIE_NO_TELEMETRY": "1", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"}
QUIET_PROMPTFOO = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "true",
    "PROMPTFOO_DISABLE_DEBUG_LOG": "true",  # otherwise it may fail because of its own log
    "PROMPTFOO_DISABLE_ERROR_LOG": "true",
}
PIXIE_AGENT = '''"""Pixie passes its input as one object, and records what is wrapped."""

import pixie

from agents import echo


async def answer(args):
    return pixie.wrap(echo(args["question"]), purpose="output", name="answer")
'''


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool with its command for one case and for many."""

    title: str
    one: Contender
    many: Contender
    installed: Callable[[], InstallSize]


@dataclass(frozen=True, slots=True)
class Result:
    """The cost of one case and of many."""

    tool: Tool
    cases: int
    one: Cost
    many: Cost

    @property
    def per_case(self) -> float:
        """CPU milliseconds per case, with start-up."""
        return 1000 * self.many.cpu / self.cases

    def row(self) -> Row:
        more = 1000 * (self.many.cpu - self.one.cpu) / (self.cases - 1)
        cells = (
            f"one case {self.one.wall:.2f} s (CPU {self.one.cpu:.2f} s)",
            f"{self.per_case:.2f} ms CPU per case",
            f"{more:.2f} ms for one more",
            f"{self.many.peak_mb:.0f} MB",
            str(self.tool.installed()),
        )
        return Row(f"- {self.tool.title}, {self.cases:,} cases", ", ".join(cells))


def measure_peers(proctor: Interpreter, folder: Path, cases: int, rounds: int, names: tuple[str, ...]) -> list[Row]:
    """Two rows with a limit for each peer, then the cost of each tool."""
    ours_tool = _proctor(proctor, folder, cases)
    tools, rows = [ours_tool], []
    for name in names:
        tool = _promptfoo(folder, cases) if name == PROMPTFOO else _python_peer(name, folder, cases)
        if tool is None:
            rows.append(Row(f"- {name}", "could not be installed"))
        elif (problem := _try(tool)) is not None:
            rows.append(Row(f"- {tool.title}", problem))
        else:
            tools.append(tool)
    costs = compare([size for tool in tools for size in (tool.one, tool.many)], rounds, warm_up=False)
    results = [Result(tool, cases, costs[tool.one.name], costs[tool.many.name]) for tool in tools]
    ours, *others = results
    limits = [row for other in others for row in _limit_rows(ours, other)]
    # The files are counted last: the kernel takes the memory of this process for the least that its children need.
    return [*limits, *(result.row() for result in results), *rows]


def _limit_rows(ours: Result, other: Result) -> list[Row]:
    cpu = f" (CPU {ours.one.cpu / other.one.cpu:.3g}x)"
    title = f"proctor / {other.tool.title}"
    return [
        at_most(f"one case from start: {title}", ours.one.wall / other.one.wall, ONE_CASE, note=cpu),
        below(f"{ours.cases:,} cases, CPU with start-up: {title}", ours.per_case / other.per_case, MANY_CASES),
    ]


def _try(tool: Tool) -> str | None:
    """Run one case, which also warms up the file cache; returns the first line of the error."""
    try:
        compare([tool.one], 1, warm_up=False)
    except ContenderFailed as error:
        return f"failed: {str(error).splitlines()[0]}"
    return None


def _proctor(proctor: Interpreter, folder: Path, cases: int) -> Tool:
    place = folder / "proctor"
    place.mkdir()

    def contender(size: int) -> Contender:
        suite = write_jsonl(place / f"cases-{size}.jsonl", size)
        return Contender(
            f"proctor, {size}", [*proctor.script("proctor"), "test", suite.name], place, clean_environment()
        )

    return Tool("proctor", contender(1), contender(cases), partial(installed_by_pip, proctor))


def _python_peer(name: str, folder: Path, cases: int) -> Tool | None:
    interpreter = peer(name)
    if interpreter is None:
        return None
    title = f"{name} {installed_version(interpreter, name)}"
    one, many = (_peer_contender(name, title, interpreter, folder / f"{name}-{size}", size) for size in (1, cases))
    return Tool(title, one, many, partial(installed_by_pip, interpreter))


def _peer_contender(name: str, title: str, interpreter: Interpreter, place: Path, cases: int) -> Contender:
    place.mkdir(exist_ok=True)
    suite = write_jsonl(place / "cases.jsonl", cases)
    if name == "pixie-qa":
        dataset = pixie_dataset([question(n) for n in range(cases)], "pixie_agent.py:answer")
        (place / "pixie_agent.py").write_text(PIXIE_AGENT, encoding="utf-8")
        (place / "dataset.json").write_text(json.dumps(dataset), encoding="utf-8")
        command = [*interpreter.script("pixie-test"), "dataset.json", "--no-open"]
    else:
        driver = HERE / "drivers" / f"drive_{name.replace('-', '_')}.py"
        command = [str(interpreter.python), str(driver), suite.name]
    return Contender(f"{title}, {cases}", command, place, clean_environment(**QUIET, PIXIE_ROOT=str(place)))


def _promptfoo(folder: Path, cases: int) -> Tool | None:
    program = node_peer(PROMPTFOO)
    if program is None:
        return None
    title = f"{PROMPTFOO} {node_version(PROMPTFOO)}"
    environment = clean_environment(**QUIET_PROMPTFOO, PROMPTFOO_CONFIG_DIR=str(folder / "promptfoo-store"))

    def contender(size: int) -> Contender:
        file = folder / f"promptfoo-{size}.json"
        file.write_text(json.dumps(_promptfoo_config(size)), encoding="utf-8")
        options = ["--no-progress-bar", "--no-table", "--no-cache", "-j", "8"]
        return Contender(f"{title}, {size}", [str(program), "eval", "-c", str(file), *options], folder, environment)

    return Tool(title, contender(1), contender(cases), partial(installed_by_npm, program))


def _promptfoo_config(cases: int) -> dict[str, object]:
    exact = {"type": "equals", "value": "{{question}}"}
    close = {"type": "levenshtein", "value": "{{question}}", "threshold": 5}
    return {
        "prompts": ["{{question}}"],
        "providers": [f"file://{HERE / 'drivers' / 'echo_provider.js'}"],
        "defaultTest": {"assert": [exact, close]},
        "tests": [{"vars": {"question": question(number)}} for number in range(cases)],
    }
