"""Time and requests to a verdict against a provider that is slow, limited, faulty or down, next to other tools.

    python benchmarks/provider.py --tool proctor --setting outage --cases 100 --runs 1    # a quick look
    python benchmarks/provider.py --tool proctor                        # Proctor in all settings, three runs per cell
    python benchmarks/provider.py --results results.jsonl               # all tools; continues what it began before
    python benchmarks/provider.py --tool proctor -- -j 20 --retries 5   # with options for `proctor test`

`--tool` and `--setting` may be repeated. `provider_variants.py` has other ways to run Proctor: with a judge, in
threads, on workers. The provider (`provider_server.py`) is an asyncio server in its own process.
Latency belongs to the case, not to the request, so a refused request gains nothing. `provider_schedule.py` has the five
settings, and says how the ideal time is computed: a client that knows everything sends the cases in the order of the
file, each as soon as the provider accepts it. The agent is the plain openai client without retries of its own.

Time is from the first request to the end of the process, divided by the ideal; starting up is not part of it (`start`
has it). Requests are divided by the least number that is possible: one for each case, and another one for each of the
1 % of faults. An error is a case for which the tool has no result because of the provider; a wrong outcome is a result
that differs from what the model answered, such as a failure because of a 429. `bare` is not a tool: a short loop that
is told the limits and the outage in advance. It shows what the client and the machine cost. Tools take turns, so that
other work on the machine disturbs all of them. A cell has the median of the runs, and the lowest and highest.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from environments import HERE, environment_with, node_peer
from measuring import clean_environment
from peers import PROMPTFOO, QUIET, QUIET_PROMPTFOO
from provider_schedule import SETTINGS, Setting, ideal_seconds, is_right, minimum_requests, question, right_answer
from provider_server import MODEL

DRIVERS = HERE / "drivers"
LIMIT_SECONDS = 900.0
"""Longer than the slowest: one case after another, 400 of them take six minutes where some take 20 s."""
KINDS = ("default", "tuned")


@dataclass(frozen=True, slots=True)
class Job:
    """One run of one tool: where it runs, with which cases, and what the provider is."""

    folder: Path
    cases: int
    setting: Setting
    options: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A contender: how its command is made, and how its outcomes are read (passed, failed or error, by case)."""

    name: str
    command: Callable[[Job], list[str]]
    outcomes: Callable[[Job], dict[int, str]]
    environment: Mapping[str, str] = field(default_factory=dict)
    judged: bool = False
    """Whether a model of the same provider judges each answer, so that the ideal counts these requests too."""
    preparation: Callable[[Job], list[str]] | None = None
    """A command that runs before, against a generous provider; it is not measured."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one run of one tool took."""

    tool: str
    setting: str
    cases: int
    seconds: float
    ideal: float
    start: float
    requests: int
    """Of the agent and of judges."""
    minimum: int
    judge_requests: int
    errors: int
    wrong: int
    cpu: float
    note: str = ""

    @property
    def time_ratio(self) -> float:
        return self.seconds / self.ideal

    @property
    def request_ratio(self) -> float:
        return self.requests / self.minimum


def measure(tool: Tool, setting: Setting, cases: int, options: Sequence[str] = ()) -> Measurement:
    """Run a tool once against a fresh provider."""
    with tempfile.TemporaryDirectory(prefix="provider-") as name:
        job = Job(Path(name), cases, setting, options)
        write_cases(job.folder, cases)
        if tool.preparation is not None:
            with running_provider(SETTINGS["generous"], cases) as address:
                _run(tool.preparation(job), tool, job, address)
        with running_provider(setting, cases) as address:
            command = tool.command(job)  # makes the tool's environment when it is used for the first time
            begin = time.monotonic()
            cpu = _run(command, tool, job, address)
            end = time.monotonic()
            log = json.loads(urllib.request.urlopen(f"{address}/log").read())
        outcomes = _outcomes(tool, job)
        if not log["requests"]:
            sys.exit(f"{tool.name} sent no request:\n{(job.folder / 'output.txt').read_text()[-3000:]}")
    expected = {number: "passed" if is_right(number) else "failed" for number in range(cases)}
    results = {number: outcomes.get(number, "error") for number in range(cases)}
    return Measurement(
        tool=" ".join([tool.name, *options]),
        setting=setting.name,
        cases=cases,
        seconds=end - log["started_at"],
        ideal=ideal_seconds(setting, cases, judged=tool.judged),
        start=log["started_at"] - begin,
        requests=len(log["requests"]),
        minimum=minimum_requests(setting, cases, judged=tool.judged),
        judge_requests=sum(entry["model"] != MODEL for entry in log["requests"]),
        errors=sum(result == "error" for result in results.values()),
        wrong=sum(result not in ("error", expected[number]) for number, result in results.items()),
        cpu=cpu,
        note=f"ended after {LIMIT_SECONDS:g} s" if end - begin > LIMIT_SECONDS else "" if outcomes else "no results",
    )


def _run(command: Sequence[str], tool: Tool, job: Job, address: str) -> float:
    """Run a command of a tool in the folder of the job, at most `LIMIT_SECONDS`; returns its CPU seconds."""
    environment = clean_environment(
        OPENAI_BASE_URL=f"{address}/v1",
        OPENAI_API_KEY="loopback",
        PYTHONPATH=str(DRIVERS),
        NO_PROXY="127.0.0.1",
        PROMPTFOO_CONFIG_DIR=str(job.folder / "promptfoo-store"),
        **tool.environment,
    )
    with (job.folder / "output.txt").open("w") as output:
        process = subprocess.Popen(
            command, cwd=job.folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        return _wait(process)


def _wait(process: subprocess.Popen[bytes]) -> float:
    """Wait for a process, at most `LIMIT_SECONDS`; returns the CPU seconds of it and of its children."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage.ru_utime + usage.ru_stime
        if time.monotonic() > deadline:
            process.kill()
            deadline = float("inf")
        time.sleep(0.02)


def _outcomes(tool: Tool, job: Job) -> dict[int, str]:
    try:
        return tool.outcomes(job)
    except OSError:
        return {}  # the tool wrote no result


def write_cases(folder: Path, cases: int) -> list[dict[str, str]]:
    """Write the cases to a file that all drivers read."""
    rows = [{"id": str(n), "input": question(n), "expected": right_answer(n)} for n in range(cases)]
    (folder / "cases.json").write_text(json.dumps(rows), encoding="utf-8")
    return rows


@contextmanager
def running_provider(setting: Setting, cases: int) -> Iterator[str]:
    """The address of a provider that runs in its own process."""
    command = [sys.executable, str(HERE / "provider_server.py"), setting.name, str(cases)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


# Proctor


OUR_PROGRAM = Path(sys.executable).with_name("proctor")


def proctor_tool(
    name: str,
    *options: str,
    agent: str = "provider_agent.py:answer",
    suite: Mapping[str, object] = MappingProxyType({}),
    program: Callable[[], Path] = lambda: OUR_PROGRAM,
    **more: Any,
) -> Tool:
    """Proctor with these options, after which come those of the command line, and with more keys of the suite."""

    def command(job: Job) -> list[str]:
        head = {"name": "provider", "agent": str(DRIVERS / agent), "evaluators": ["ExactMatch"], **suite}
        rows = json.loads((job.folder / "cases.json").read_text())
        lines = "".join(json.dumps(row) + "\n" for row in [{"suite": head}, *rows])
        (job.folder / "suite.jsonl").write_text(lines, encoding="utf-8")
        return [str(program()), "test", "suite.jsonl", "--json", "report.json", *options, *job.options]

    return Tool(name, command, _reported_outcomes, **more)


def _reported_outcomes(job: Job) -> dict[int, str]:
    """The outcomes of Proctor's report."""
    report = json.loads((job.folder / "report.json").read_text())
    return {int(trial["case"]["id"]): trial["outcome"] for trial in report["trials"]}


# The loop that knows everything


def _bare(job: Job) -> list[str]:
    return [sys.executable, str(DRIVERS / "provider_bare.py"), job.setting.name, str(job.cases)]


def _written_outcomes(job: Job) -> dict[int, str]:
    """The outcomes that a driver of ours wrote."""
    return {int(number): word for number, word in json.loads((job.folder / "outcomes.json").read_text()).items()}


# Peers, each in its own environment under `.venvs/`


PEERS = {
    "inspect-ai": ("inspect-ai", "openai"),
    "pydantic-evals": ("pydantic-evals", "openai", "pydantic-ai-slim[retries]"),
    "deepeval": ("deepeval", "openai"),
}
"""The packages of each peer's environment."""


def _peer(name: str, kind: str) -> Tool:
    """A peer with a driver of ours, as it is without options (default) or as its documentation advises (tuned)."""

    def command(job: Job) -> list[str]:
        interpreter = environment_with(f"provider-{name}", PEERS[name])
        if interpreter is None:
            sys.exit(f"{name} cannot be installed")
        return [str(interpreter.python), str(DRIVERS / f"provider_{name.replace('-', '_')}.py"), kind]

    return Tool(name if kind == "default" else f"{name}-tuned", command, _written_outcomes, QUIET)


def _promptfoo(kind: str) -> Tool:
    """promptfoo with its own client: 4 cases at a time; tuned, 32 with more retries, also after a 5xx.

    Its waits double, so with more retries the first has to be shorter than the default of 5 s. After a 429 without a
    header it waits for a minute, which no option changes.
    """
    tuned = kind == "tuned"

    def command(job: Job) -> list[str]:
        program = node_peer(PROMPTFOO)
        if program is None:
            sys.exit(f"{PROMPTFOO} cannot be installed")
        rows = json.loads((job.folder / "cases.json").read_text())
        provider: dict[str, object] = {"id": f"openai:chat:{MODEL}"}
        if tuned:
            provider["config"] = {"maxRetries": 8}
        config = {
            "prompts": ["{{question}}"],
            "providers": [provider],
            "defaultTest": {"assert": [{"type": "equals", "value": "{{expected}}"}]},
            "tests": [{"vars": {"question": row["input"], "expected": row["expected"]}} for row in rows],
        }
        (job.folder / "promptfooconfig.json").write_text(json.dumps(config), encoding="utf-8")
        options = ["-c", "promptfooconfig.json", "-o", "out.json", "--no-cache", "--no-table", "--no-progress-bar"]
        return [str(program), "eval", *options, *(["-j", "32"] if tuned else [])]

    def outcomes(job: Job) -> dict[int, str]:
        results = json.loads((job.folder / "out.json").read_text())["results"]["results"]
        return {
            item["testIdx"]: "passed" if item["success"] else "error" if item["failureReason"] == 2 else "failed"
            for item in results
        }

    more = {"PROMPTFOO_RETRY_5XX": "true", "PROMPTFOO_REQUEST_BACKOFF_MS": "1000"} if tuned else {}
    return Tool(f"{PROMPTFOO}-tuned" if tuned else PROMPTFOO, command, outcomes, QUIET_PROMPTFOO | more)


TOOLS = {
    tool.name: tool
    for tool in (
        proctor_tool("proctor"),
        proctor_tool("proctor-tuned", "--hedge", suite={"settings": {"side_effects": False}}),
        Tool("bare", _bare, _written_outcomes),
        *(_peer(name, kind) for name in PEERS for kind in KINDS),
        *(_promptfoo(kind) for kind in KINDS),
    )
}


# The table


HEAD = ("setting", "tool", "time / ideal", "requests / least", "errors", "wrong", "CPU", "start")


def table(measurements: Sequence[Measurement]) -> str:
    """The cells of all settings and tools as a Markdown table."""
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for item in measurements:
        groups.setdefault((item.setting, item.tool), []).append(item)
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---|" + "---:|" * (len(HEAD) - 2)]
    for setting in SETTINGS:
        for (name, _), items in groups.items():
            if name == setting:
                lines.append("| " + " | ".join(_cells(items)) + " |")
    return "\n".join(lines)


def _cells(items: Sequence[Measurement]) -> list[str]:
    notes = "; ".join(dict.fromkeys(item.note for item in items if item.note))
    return [
        items[0].setting,
        items[0].tool,
        _spread([item.time_ratio for item in items], ".2f") + (f" ({notes})" if notes else ""),
        _spread([item.request_ratio for item in items], ".3f"),
        _spread([item.errors for item in items], ".0f"),
        _spread([item.wrong for item in items], ".0f"),
        f"{_spread([item.cpu for item in items], '.1f')} s",
        f"{_spread([item.start for item in items], '.1f')} s",
    ]


def _spread(values: Sequence[float], form: str) -> str:
    """The median, and the lowest and highest value if they look different."""
    middle, low, high = (format(value, form) for value in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def run_benchmark(tools: Mapping[str, Tool], description: str) -> None:
    """The command line of the benchmark, with these tools."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tool", action="append", choices=tools, help="default: all")
    parser.add_argument("--setting", action="append", choices=SETTINGS, help="default: all")
    parser.add_argument("--cases", type=int, default=400)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="append to FILE (JSON Lines); measure only what is missing there"
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="measure nothing; print the table of these results")
    parser.add_argument("options", nargs="*", metavar="-- OPTION", help="further options for `proctor test`")
    arguments = parser.parse_args()
    if arguments.table:
        print(table([item for item in read_results(arguments.table) if item.cases == arguments.cases]))
        return
    chosen = [tools[name] for name in arguments.tool or tools]
    earlier = [item for item in read_results(arguments.results) if item.cases == arguments.cases]
    measurements: list[Measurement] = []
    for setting in arguments.setting or SETTINGS:
        for number in range(arguments.runs):
            for tool in chosen:
                name = " ".join([tool.name, *arguments.options])
                stored = [item for item in earlier if (item.setting, item.tool) == (setting, name)]
                if number < len(stored):
                    measurements.append(stored[number])
                    continue
                result = measure(tool, SETTINGS[setting], arguments.cases, arguments.options)
                measurements.append(result)
                print(_line(result), file=sys.stderr, flush=True)
                if arguments.results:
                    with arguments.results.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(result)) + "\n")
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{arguments.cases} cases, {arguments.runs} runs, {machine}\n")
    print(table(measurements))


def read_results(file: Path | None) -> list[Measurement]:
    """The measurements in a file, if it exists."""
    if file is None or not file.exists():
        return []
    return [Measurement(**json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def _line(result: Measurement) -> str:
    return (
        f"{result.setting}, {result.tool}: {result.seconds:.1f} s, {result.time_ratio:.2f} x ideal, "
        f"{result.request_ratio:.3f} x requests, {result.errors} errors, {result.wrong} wrong"
    )


if __name__ == "__main__":
    run_benchmark(TOOLS, "Proctor and other tools against a loopback provider.")
