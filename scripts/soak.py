"""Attacks Proctor until the time is over, and prints a table of what was tried and what broke.

    scripts/soak.sh                                       an hour, at low priority
    scripts/soak.sh --minutes 5
    scripts/soak.sh --minutes 5 --only kill --only wal    some of the attacks

The attacks take turns, and each turn makes its own random choices: which command, when it is killed, where a file is
damaged, how large the disk is. What must never happen is counted as a violation, by its name:

- a trial that was printed, or that was stored before the attack, is missing afterwards, or is stored twice
- a test exits with 0, and the store has no finished run of all its cases
- a traceback is printed
- the database is damaged, or a baseline or a suite cannot be read any more
- the same command, run again after the attack, ends differently than without the attack, or counts something twice
- a process of the command still runs after it was killed
- a damaged message of a worker is neither read nor refused
- a process with many runs keeps file descriptors, threads or memory of them
- a limit of the machine that is reached during a trial is the agent's failure, or changes another trial
- a secret is in a file that a command has written, or in what it printed

Exits with 1 if there was a violation. Each violation is printed to standard error when it happens, with the end of the
output. SOAK_SEED repeats the random choices of an earlier run.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import json
import keyword
import os
import pickle
import random
import re
import resource
import shutil
import signal
import sqlite3
import string
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proctor.agents.reply import Reply, ToolCall, Usage
from proctor.base.errors import AgentFailed, ProctorError
from proctor.results.score import Outcome
from proctor.results.store.store import Store
from proctor.running.messages import (
    HostStatus,
    InvalidMessage,
    LostTime,
    SessionOpened,
    TurnAnswered,
    decode_message,
    encode_message,
)

AGENT = """
import random, time


def agent(question):
    time.sleep(random.uniform(0.005, 0.03))
    return question
"""
CHANGED_AGENT = """
def agent(question):
    return "something else" if question in ("q1", "q2") else question
"""
TONE = """
import proctor

tone = proctor.create_agent_evaluator("tone", "Friendly, and free of blame.")
"""
MANY_RUNS = """
import ctypes, gc, json, os, sys, threading

import proctor

def agent(question):
    return question

def state():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what is free but not returned to the system is no leak
    pages = int(open("/proc/self/statm").read().split()[1])
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
        "MB of memory": pages * os.sysconf("SC_PAGE_SIZE") // 2**20,
    }

suite = {"name": "many", "cases": [{"id": f"c{n}", "input": f"q{n}", "expected": f"q{n}"} for n in range(5)],
         "evaluators": ["ExactMatch"]}
wrong, before = 0, {}
for number in range(int(sys.argv[1])):
    run = proctor.run(suite, agent, store="many" if number % 2 else None, progress=False)
    wrong += not run.passed or len(run.trials) != 5
    if number == 9:
        before = state()
print(json.dumps({"wrong": wrong, "before": before, "after": state()}))
"""
TAMPERING = """
import builtins

def broken(*arguments, **options):
    raise {error}

def agent(question):
    if question == "q1":
        {act}
    return question
"""
LIMITED = """
import os, resource

def act():
    kind, more = getattr(resource, "{kind}"), {more}
    before = resource.getrlimit(kind)
    resource.setrlimit(kind, (more, before[1]))
    held = []
    try:
        {act}
    finally:
        for file in held:
            file.close()
        resource.setrlimit(kind, before)

def agent(question):
    if question == "q1":
        act()
    return question

def check(output):
    if output == "q1":
        act()
    return True
"""
LIMITS = {
    "open files": (
        "RLIMIT_NOFILE",
        'len(os.listdir("/proc/self/fd")) + 2',
        'while True: held.append(open("/dev/null"))',
    ),
    "memory": ("RLIMIT_AS", 'int(open("/proc/self/statm").read().split()[0]) * 4096 + 2**26', "bytearray(2**29)"),
    "file size": (
        "RLIMIT_FSIZE",
        "1000",
        'open("large", "wb", buffering=0).write(bytes(1000)) and open("large", "ab", buffering=0).write(b"x")',
    ),
}
LEAKING = """
import proctor

@proctor.tool
def find(query, **options):
    return {{"found": query, "options": options}}

def agent(question):
    print("question:", question)
    find(question, **{{"{secret}": 1}})
    if question.startswith("raise"):
        raise ValueError(question)
    return "answer: " + question
"""
CASES = 40
SECONDS_TO_END = 20.0
"""How long processes may take to end after their command was killed."""

STORE = "store"
COMMANDS: dict[str, tuple[str, ...]] = {
    "test": ("test", "suite.yaml", "-j", "3", "--resume"),
    "test --reuse": ("test", "suite.yaml", "--reuse"),
    "test --isolate": ("test", "suite.yaml", "--isolate"),
    "test --gate": ("test", "suite.yaml", "--gate", "--baseline", "first"),
    "test --gate --against": ("test", "changed.yaml", "--gate", "--against", "HEAD"),
    "test --arms": ("test", "suite.yaml", "--arms", "old=HEAD,new=."),
    "test with reports": ("test", "suite.yaml", "--html", "r.html", "--junit", "r.xml", "--json", "r.json"),
    "rescore": ("rescore", "first"),
    "grade": ("grade", "people", "--from", "grades.json"),
    "baseline accept": ("baseline", "accept", "first"),
    "runs import": ("runs", "import", "other.jsonl"),
    "runs export": ("runs", "export", "first", "--output", "again.jsonl"),
    "runs delete": ("runs", "delete", "first", "--yes"),
    "approve": ("approve", "approved.yaml", "--accept-all"),
    "show": ("show", "first"),
    "compare": ("compare", "first", "second"),
}
"""What is attacked, by the name in the table. Every one of them is started with `--store`."""


@dataclass
class Tally:
    """One row of the table."""

    attack: str
    unit: str
    tried: int = 0
    notes: Counter[str] = field(default_factory=Counter)
    violations: Counter[str] = field(default_factory=Counter)

    def violation(self, name: str, details: str) -> None:
        self.violations[name] += 1
        print(f"VIOLATION {self.attack}: {name}\n{details[-3000:]}", file=sys.stderr, flush=True)

    def check(self, condition: bool, name: str, details: str) -> None:
        if not condition:
            self.violation(name, details)


@dataclass
class Soak:
    """The folder of an attack, its random choices, and the rows of the table."""

    folder: Path
    dice: random.Random
    tallies: dict[str, Tally] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each command takes if nobody disturbs it."""
    normal_exits: dict[str, set[int]] = field(default_factory=dict)
    """How each command exits if nobody disturbs it: the first time, and when it is run again."""
    normal_states: dict[str, Any] = field(default_factory=dict)

    def tally(self, attack: str, unit: str) -> Tally:
        return self.tallies.setdefault(attack, Tally(attack, unit))

    def copy(self) -> Path:
        """A fresh copy of the prepared project."""
        target = Path(tempfile.mkdtemp(dir=self.folder)) / "project"
        shutil.copytree(self.folder / "prepared", target, symlinks=True)
        return target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--only", action="append", choices=sorted(ATTACKS), help="only this attack; repeatable")
    options = parser.parse_args()
    seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 1_000_000))
    print(f"SOAK_SEED={seed} repeats the choices of this run", file=sys.stderr, flush=True)
    end = time.monotonic() + options.minutes * 60
    attacks = [attack for name, attack in ATTACKS.items() if not options.only or name in options.only]
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder), random.Random(seed))
        prepare(soak)
        while True:
            for attack in attacks:
                try:
                    attack(soak)
                except Exception:  # a command that hangs, or something that this script did not expect
                    soak.tally(attack.__name__, "breaks").violation("the attack broke", traceback.format_exc())
            if time.monotonic() >= end:
                break
            print(f"{sum(t.tried for t in soak.tallies.values())} attacks so far", file=sys.stderr, flush=True)
    print("| attack | tried | violations |\n|---|---|---|")
    for tally in sorted(soak.tallies.values(), key=lambda item: item.attack):
        found = ", ".join(f"{count} × {name}" for name, count in tally.violations.items()) or "0"
        notes = "".join(f", {count:,} {name}" for name, count in sorted(tally.notes.items()))
        print(f"| {tally.attack} | {tally.tried:,} {tally.unit}{notes} | {found} |")
    violations = sum(sum(tally.violations.values()) for tally in soak.tallies.values())
    print(f"\n{violations} violations")
    return int(violations > 0)


# The project that is attacked


def prepare(soak: Soak) -> None:
    """Write the project with a store of three runs, and see how each command ends if nobody disturbs it."""
    project = soak.folder / "prepared"
    project.mkdir()
    for name, text in {"agents.py": AGENT, "changed.py": AGENT, "tone.py": TONE, "many.py": MANY_RUNS}.items():
        (project / name).write_text(text)
    write_suite(project / "suite.yaml", "soak", "agents.py:agent", CASES)
    write_suite(project / "changed.yaml", "changed", "changed.py:agent", 10)
    write_suite(project / "people.yaml", "people", "agents.py:agent", 10, evaluator="tone.py:tone")
    write_suite(project / "approved.yaml", "approved", "agents.py:agent", 10, expected=False)
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
        settings = ["-c", "user.name=soak", "-c", "user.email=soak@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *settings, *arguments], cwd=project, check=True)
    (project / "changed.py").write_text(CHANGED_AGENT)
    for name, suite in {"first": "suite.yaml", "people": "people.yaml", "second": "suite.yaml"}.items():
        run(project, "test", suite, "--name", name)
    run(project, "test", "suite.yaml", "--name", "other", store="elsewhere")
    run(project, "runs", "export", "other", "-o", "other.jsonl", store="elsewhere")
    rows = json.loads(run(project, "grade", "people", "--json").stdout)
    assert len(rows) == 10, rows
    grades = [{**row, "score": 1.0, "reasoning": "fine"} for row in rows]
    (project / "grades.json").write_text(json.dumps(grades))
    for name, command in COMMANDS.items():
        copy = soak.copy()
        started = time.monotonic()
        first = run(copy, *command)
        soak.seconds[name] = time.monotonic() - started
        soak.normal_states[name] = state_after(copy, name)
        second = run(copy, *command)
        soak.normal_exits[name] = {first.returncode, second.returncode}
        print(f"{name}: exits with {first.returncode}, then {second.returncode}", file=sys.stderr, flush=True)
        if "Traceback" in first.stdout + second.stdout or first.returncode in (2, 4):
            raise SystemExit(f"{name} does not work without an attack: {first.stdout}")


def write_suite(
    path: Path, name: str, agent: str, cases: int, *, evaluator: str = "ExactMatch", expected: bool = True
) -> None:
    rows = [f"  - id: c{n}\n    input: q{n}\n" + (f"    expected: q{n}\n" if expected else "") for n in range(cases)]
    evaluators = f"evaluators: [{evaluator}]\n" if expected else ""
    path.write_text(f"name: {name}\nagent: {agent}\n{evaluators}cases:\n{''.join(rows)}")


def command_line(*arguments: str, store: str = STORE) -> list[str]:
    return [sys.executable, "-m", "proctor", *arguments, "--store", store]


def start(project: Path, *arguments: str, store: str = STORE, **options: Any) -> subprocess.Popen[str]:
    """Start a command in its own session, so that all of its processes can be found."""
    return subprocess.Popen(
        command_line(*arguments, store=store),
        cwd=project,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        **options,
    )


def run(project: Path, *arguments: str, store: str = STORE, **options: Any) -> subprocess.CompletedProcess[str]:
    process = start(project, *arguments, store=store, **options)
    out, _ = process.communicate(timeout=600)
    return subprocess.CompletedProcess(process.args, process.returncode, out)


# What is checked


@contextlib.contextmanager
def open_store(folder: Path) -> Iterator[Store]:
    store = Store(folder, create=False)
    try:
        yield store
    finally:
        store.close()


Trials = Counter[tuple[str, str, str, int]]
"""How often a trial is stored, by the id of its run, its suite, its case and its number."""


def stored_trials(folder: Path) -> Trials:
    with open_store(folder) as store:
        return Counter(
            (run.id, trial.suite, f"{trial.arm or ''}{trial.case.id}", trial.number)
            for run in store.runs()
            for trial in store.trials(run.no)
        )


def has_passed(folder: Path, cases: int) -> bool:
    """Whether the last run in a store is finished and has a passed trial of each case."""
    try:
        with open_store(folder) as store:
            last = store.runs(1)[0]
            trials = list(store.trials(last.no))
    except (ProctorError, IndexError):
        return False
    return last.finished_at is not None and len({t.case.id for t in trials if t.outcome is Outcome.PASSED}) == cases


def state_after(project: Path, command: str) -> Any:
    """What a command has changed, without times and ids."""
    if command == "baseline accept":
        shown = run(project, "baseline", "show", "suite.yaml", "--json").stdout
        return re.sub(r'"\d{4}-[^"]*"', '""', shown)
    if command == "grade":
        return run(project, "grade", "people", "--json").stdout
    if command == "runs import":
        return len([key for key in stored_trials(project / STORE) if key[1] == "soak"])
    if command == "runs delete":
        return len(stored_trials(project / STORE))
    if command == "approve":
        return re.sub(r"(run|at|accepted_at): .*", "", (project / "approved.yaml").read_text())
    return None


def check_store(tally: Tally, project: Path, before: Trials, details: str, *, may_delete: bool = False) -> None:
    """The database is sound, and has every trial that it had before, once."""
    try:
        after = stored_trials(project / STORE)
    except ProctorError as error:
        tally.violation("store cannot be opened", f"{details}\n{error}")
        return
    tally.check(may_delete or not before - after, "stored trials lost", details)
    tally.check(max(after.values(), default=1) == 1, "trials stored twice", details)
    connection = sqlite3.connect(project / STORE / "results.db")
    with contextlib.closing(connection):
        tally.check(connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "damaged database", details)
        tally.check(not connection.execute("PRAGMA foreign_key_check").fetchall(), "orphaned rows", details)


def processes_of(session: int) -> list[int]:
    """The processes of a session that still run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            status, _, _, owner = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(owner) == session and status != "Z":
                found.append(int(entry.name))
    return found


def check_ended(tally: Tally, session: int, details: str) -> None:
    end = time.monotonic() + SECONDS_TO_END
    while (left := processes_of(session)) and time.monotonic() < end:
        time.sleep(0.05)
    tally.check(not left, "processes left running", details)
    for process in left:
        with contextlib.suppress(OSError):
            os.kill(process, signal.SIGKILL)


# The attacks


def kill(soak: Soak) -> None:
    """Kill each command once, at any moment; then run it again."""
    names = list(COMMANDS)
    soak.dice.shuffle(names)
    for name in names:
        project, tally = soak.copy(), soak.tally(f"`kill -9` during `{name}`", "kills")
        before = stored_trials(project / STORE)
        process = start(project, *COMMANDS[name])
        delay, whole = soak.dice.uniform(0.05, 1.1 * soak.seconds[name]), soak.dice.random() < 0.5
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(delay)
        if process.poll() is None:
            tally.tried += 1
            _kill(process, child=not whole)
        out = process.communicate(timeout=120)[0]
        details = f"{name} killed after {delay:.2f} s, exit {process.returncode}\n{out}"
        check_ended(tally, process.pid, details)
        if name.startswith("test") and process.returncode == 0:
            tally.check(has_passed(project / STORE, CASES), "exit 0 without a verdict", details)
        check_store(tally, project, before, details, may_delete=name == "runs delete")
        if name == "test":
            printed = set(re.findall(r"\bsoak/(c\d+)\b", out))
            with open_store(project / STORE) as store:
                last = {trial.case.id for trial in store.trials(store.runs(1)[0].no)}
            tally.check(printed <= last, "printed trials lost", details)
        again = run(project, *COMMANDS[name])
        details += f"\nagain: exit {again.returncode}\n{again.stdout}"
        tally.check("Traceback" not in out + again.stdout, "traceback", details)
        tally.check(again.returncode in soak.normal_exits[name], "other exit code when run again", details)
        if again.returncode in soak.normal_exits[name]:
            state = state_after(project, name)
            tally.check(state == soak.normal_states[name], "other result when run again", f"{details}\n{state}")
        check_store(tally, project, before, details, may_delete=name == "runs delete")
        shutil.rmtree(project.parent)


def _kill(process: subprocess.Popen[str], *, child: bool) -> None:
    """Kill the command, or the process in which it works."""
    if child:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for number in children:
                os.kill(int(number), signal.SIGKILL)
            if children:
                return
    process.kill()


def resume(soak: Soak) -> None:
    """Kill one run again and again, and resume it until it has finished."""
    tally = soak.tally("`kill -9` again and again, then `--resume`", "kills")
    project = soak.copy()
    printed: set[str] = set()
    out = ""
    for attempt in range(30):
        process = start(project, *COMMANDS["test"], store="resumed")
        if attempt < 29:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(soak.dice.uniform(0.3, 1.1 * soak.seconds["test"]))
            if process.poll() is None:
                tally.tried += 1
                _kill(process, child=soak.dice.random() < 0.5)
        out = process.communicate(timeout=120)[0]
        printed |= set(re.findall(r"\bsoak/(c\d+)\b", out))
        check_ended(tally, process.pid, out)
        tally.check("Traceback" not in out, "traceback", out)
        if process.returncode == 0:
            break
    tally.check(process.returncode == 0, "a resumed run did not finish", out)
    tally.check(has_passed(project / "resumed", CASES), "exit 0 without a verdict", out)
    stored = stored_trials(project / "resumed")
    tally.check(printed <= {case for _, _, case, _ in stored}, "printed trials lost", out)
    tally.check(max(stored.values()) == 1, "trials stored twice", out)
    shutil.rmtree(project.parent)


def wal(soak: Soak) -> None:
    """Kill a run while it writes, damage the write-ahead log, and use the store."""
    tally = soak.tally("a damaged write-ahead log", "logs")
    project = soak.copy()
    process = start(project, *COMMANDS["test"])
    log = project / STORE / "results.db-wal"
    end = time.monotonic() + 20
    while process.poll() is None and time.monotonic() < end and not (log.exists() and log.stat().st_size > 40_000):
        time.sleep(0.005)
    time.sleep(soak.dice.uniform(0, 0.2))
    process.kill()
    process.communicate(timeout=60)
    check_ended(tally, process.pid, "")
    if not log.exists() or not log.stat().st_size:
        shutil.rmtree(project.parent)
        return
    tally.tried += 1
    damage = _damage(log, soak.dice)
    for command in (("runs",), ("show", "last"), COMMANDS["test"]):
        result = run(project, *command)
        details = f"{damage}: {' '.join(command)}: exit {result.returncode}\n{result.stdout}"
        tally.check("Traceback" not in result.stdout, "traceback", details)
        tally.check(result.returncode in range(5), "odd exit code", details)
        if command[0] == "test" and result.returncode == 0:
            tally.check(has_passed(project / STORE, CASES), "exit 0 without a verdict", details)
        elif command[0] == "test":
            tally.notes["refused with a message"] += 1
            tally.check("error" in result.stdout.lower(), "no message", details)
    shutil.rmtree(project.parent)


def _damage(path: Path, dice: random.Random) -> str:
    """Damage a file; returns how."""
    data = bytearray(path.read_bytes())
    kind = dice.choice(["cut", "zeros", "flips", "noise", "twice", "empty"])
    if kind == "cut":
        del data[dice.randrange(len(data)) :]
    elif kind == "zeros":
        place, length = dice.randrange(len(data)), dice.randrange(1, 8192)
        data[place : place + length] = bytes(len(data[place : place + length]))
    elif kind == "flips":
        for _ in range(dice.randrange(1, 50)):
            data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    elif kind == "noise":
        data[:] = dice.randbytes(len(data))
    elif kind == "twice":
        data += bytes(data)
    else:
        data.clear()
    path.write_bytes(data)
    return f"{kind} of {path.name}"


def disk(soak: Soak) -> None:
    """Let a command write until the disk is full: no more bytes, or no more files."""
    for name in soak.dice.sample(["test", "test --arms", "grade", "runs import", "rescore", "baseline accept"], 3):
        project, tally = soak.copy(), soak.tally("a full disk", "commands")
        before = stored_trials(project / STORE)
        size = soak.dice.choice([1_000, 20_000, 60_000, 120_000, 200_000, 300_000])
        size += sum(path.stat().st_size for path in (project / STORE).iterdir()) * soak.dice.randrange(2)
        details, result = _on_full_disk(soak, project, name, size)
        tally.tried += 1
        details += f"{name} with {size} bytes: exit {result.returncode}\n{result.stdout}"
        tally.check("Traceback" not in result.stdout, "traceback", details)
        tally.check(result.returncode in range(5), "odd exit code", details)
        if result.returncode == 0 and name.startswith("test"):
            tally.check(has_passed(project / STORE, CASES), "exit 0 without a verdict", details)
        tally.notes["ended with an error"] += result.returncode not in soak.normal_exits[name]
        check_store(tally, project, before, details)
        again = run(project, *COMMANDS[name])
        details += f"\nagain, with space: exit {again.returncode}\n{again.stdout}"
        tally.check(again.returncode in soak.normal_exits[name], "other exit code when run again", details)
        if again.returncode in soak.normal_exits[name]:
            tally.check(state_after(project, name) == soak.normal_states[name], "other result when run again", details)
        shutil.rmtree(project.parent)


def _on_full_disk(soak: Soak, project: Path, name: str, size: int) -> tuple[str, subprocess.CompletedProcess[str]]:
    """Run a command whose files cannot grow; as root, on a small file system of its own."""
    if os.geteuid() != 0 or soak.dice.random() < 0.5:

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        return "largest file: ", run(project, *COMMANDS[name], preexec_fn=limit)
    folder, store = project.parent / "disk", project / STORE
    folder.mkdir()
    used = sum((path.stat().st_size // 4096 + 1) * 4096 for path in store.iterdir())
    options = f"size={used + size},nr_inodes={soak.dice.choice([4, 6, 8, 1000])}"
    if subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=False).returncode:
        return "not mounted: ", run(project, *COMMANDS[name])
    try:
        for path in store.iterdir():
            shutil.copy(path, folder)
        result = run(project, *COMMANDS[name], store=str(folder))
        shutil.rmtree(store)
        shutil.copytree(folder, store)
    finally:
        subprocess.run(["umount", folder], check=True)
    return f"file system with {options}: ", result


def concurrent(soak: Soak) -> None:
    """Four runs write to one store, and sometimes one of them is killed."""
    tally = soak.tally("four runs at the same time in one store", "runs")
    project = soak.copy()
    processes = [start(project, "test", "suite.yaml", "--name", f"n{n}", store="shared") for n in range(4)]
    killed = soak.dice.choice([None, 0, 1, 2, 3])
    if killed is not None:
        time.sleep(soak.dice.uniform(0.5, 3))
        _kill(processes[killed], child=soak.dice.random() < 0.5)
    outputs = [process.communicate(timeout=300)[0] for process in processes]
    tally.tried += len(processes)
    with open_store(project / "shared") as store:
        trials = {run.name: [trial.case.id for trial in store.trials(run.no)] for run in store.runs()}
    for number, (process, out) in enumerate(zip(processes, outputs, strict=True)):
        check_ended(tally, process.pid, out)
        tally.check("Traceback" not in out, "traceback", out)
        stored = trials.get(f"n{number}", [])
        tally.check(len(stored) == len(set(stored)), "trials stored twice", out)
        if number != killed or process.returncode == 0:
            tally.check(process.returncode == 0, "failed because of the others", out)
            tally.check(len(stored) == CASES, "stored trials lost", out)
    shutil.rmtree(project.parent)


def many(soak: Soak) -> None:
    """60 times `proctor.run` in one process."""
    tally = soak.tally("60 × `proctor.run` in one process", "processes")
    project = soak.copy()
    process = subprocess.run(
        [sys.executable, "many.py", "60"], cwd=project, capture_output=True, text=True, timeout=600, check=False
    )
    tally.tried += 1
    details = f"exit {process.returncode}\n{process.stdout}\n{process.stderr}"
    if process.returncode:
        tally.violation("did not end normally", details)
    else:
        result = json.loads(process.stdout.splitlines()[-1])
        tally.check(result["wrong"] == 0, "wrong results", details)
        # SQLite may close descriptors of a database late. One that stays for every second run is a leak.
        for what, count in result["before"].items():
            tally.check(result["after"][what] < count + 25, f"more {what} after 60 runs than after 10", details)
    shutil.rmtree(project.parent)


def load(soak: Soak) -> None:
    """1,000 trials, 300 in parallel: each must get its own answer."""
    tally = soak.tally("1,000 trials, 300 in parallel", "runs")
    project = soak.copy()
    write_suite(project / "large.yaml", "large", "agents.py:agent", 1000)
    result = run(project, "test", "large.yaml", "-j", "300", "-q")
    with open_store(project / STORE) as store:
        trials = list(store.trials(store.runs(1)[0].no))
    mixed_up = sum(trial.replies[0].text != trial.case.turns[0].input for trial in trials)
    tally.tried += 1
    tally.check(result.returncode == 0 and len(trials) == 1000, "did not pass", result.stdout)
    tally.check(not mixed_up, "answers mixed up", result.stdout)
    shutil.rmtree(project.parent)


def messages(soak: Soak) -> None:
    """Damaged messages of a worker: each must be read as data, or refused."""
    tally = soak.tally("damaged messages of a worker", "messages")
    valid = [
        encode_message(TurnAnswered(Reply("yes", (ToolCall("look", {"key": [1]}),), Usage(1, 2), structured={"a": 1}))),
        encode_message(SessionOpened(AgentFailed("no"))),
        encode_message(HostStatus((LostTime(1, 0.5),), 0.0, None)),
        pickle.dumps({"text": "yes"}),
    ]
    for _ in range(2_000):
        data = bytearray(soak.dice.choice(valid))
        for _ in range(soak.dice.choice((1, 1, 2, 8))):
            start = soak.dice.randrange(len(data) + 1)
            data[start : start + soak.dice.choice((0, 1, 5))] = soak.dice.choice(
                (b"", b"[", b"null", b'"', b"-1e999", soak.dice.randbytes(3), b"[" * 300, b"{}", b"\\ud800")
            )
        tally.tried += 1
        try:
            decode_message(bytes(data), object, limit=10_000)
        except InvalidMessage:
            tally.notes["refused"] += 1
        except Exception:
            tally.violation("another exception", f"{bytes(data)!r}\n{traceback.format_exc()}")


def environment(soak: Soak) -> None:
    """Run a suite where a limit is low, a folder or a variable is missing, or a stream is closed or full."""
    tally, dice = soak.tally("a poor environment", "commands"), soak.dice
    project = soak.copy()
    kind = dice.choice(["files", "memory", "streams", "output", "folder", "variables"])
    variables = dict(os.environ)
    redirection = ""
    if kind == "files":
        redirection = f"ulimit -n {dice.randrange(5, 80)}; "
    elif kind == "memory":
        redirection = f"ulimit -v {dice.randrange(50_000, 150_000)}; "
    elif kind == "streams":
        redirection = "exec " + " ".join(f"{number}>&-" for number in dice.sample([0, 2], dice.randrange(1, 3))) + "; "
    elif kind == "output":
        redirection = "exec >/dev/full; "
    elif kind == "folder":
        redirection = "mkdir gone; cd gone; rmdir ../gone; "
    else:
        names = dice.sample(sorted(variables.keys() - {"PATH"}), dice.randrange(1, len(variables)))
        variables = {name: value for name, value in variables.items() if name not in names}
        variables |= dict.fromkeys(dice.sample(["HOME", "TMPDIR", "LANG", "TERM", "COLUMNS", "TZ"], 3), "/nowhere")
    line = (
        f"{redirection}exec {' '.join(command_line('test', str(project / 'suite.yaml'), store=str(project / STORE)))}"
    )
    before = stored_trials(project / STORE)
    result = subprocess.run(
        ["bash", "-c", line], cwd=project, env=variables, capture_output=True, text=True, timeout=300, check=False
    )
    details = f"{line}\nexit {result.returncode}\n{result.stdout}\n{result.stderr}"
    tally.tried += 1
    tally.check("Traceback" not in result.stdout + result.stderr, "traceback", details)
    tally.check(result.returncode in range(5), "odd exit code", details)
    if result.returncode == 0:
        tally.check(has_passed(project / STORE, CASES), "exit 0 without a verdict", details)
        tally.check(kind != "output", "exit 0, and nobody could see the verdict", details)
    elif kind not in ("output", "streams"):
        tally.notes["ended with an error"] += 1
        tally.check("error" in (result.stdout + result.stderr).lower(), "no message", details)
    check_store(tally, project, before, details)
    shutil.rmtree(project.parent)


def tamper(soak: Soak) -> None:
    """Let an agent delete or replace one of Python's own functions."""
    tally, dice = soak.tally("an agent that replaces a function of Python", "runs"), soak.dice
    project = soak.copy()
    name = dice.choice([name for name in dir(builtins) if name[0] != "_" and not keyword.iskeyword(name)])
    act = dice.choice([f"builtins.{name} = broken", f"builtins.{name} = None", f"del builtins.{name}"])
    error = dice.choice(["ValueError", "SystemExit(0)", "KeyboardInterrupt"])
    (project / "agents.py").write_text(TAMPERING.format(error=error, act=act))
    result = run(project, "test", "suite.yaml", "-j", "3", "--timeout", "10", store="tampered")
    details = f"{act} ({error}): exit {result.returncode}\n{result.stdout}"
    tally.tried += 1
    tally.check("Traceback (most" not in result.stdout, "traceback", details)
    tally.check(result.returncode in (0, 1, 4), "odd exit code", details)
    if result.returncode == 0:
        tally.check(has_passed(project / "tampered", CASES), "exit 0 without a verdict", details)
        tally.check("PASSED" in result.stdout, "no verdict was printed", details)
    shutil.rmtree(project.parent)


def limits(soak: Soak) -> None:
    """Reach a limit of the machine in a trial: in a thread, in a process of its own, or in an evaluator."""
    tally = soak.tally("a limit of the machine during a trial", "runs")
    project = soak.copy()
    name, where = soak.dice.choice(sorted(LIMITS)), soak.dice.choice(["thread", "process", "evaluator"])
    kind, more, act = LIMITS[name]
    (project / "limited.py").write_text(LIMITED.format(kind=kind, more=more, act=act))
    is_evaluator = where == "evaluator"
    write_suite(
        project / "limited.yaml",
        "limited",
        f"{'agents' if is_evaluator else 'limited'}.py:agent",
        5,
        evaluator="limited.py:check" if is_evaluator else "ExactMatch",
    )
    options = ["--isolate"] if where == "process" else []
    result = run(project, "test", "limited.yaml", "-j", "1", *options, store="limited")
    with open_store(project / "limited") as store:
        outcomes = {trial.case.id: trial.outcome for trial in store.trials(store.runs(1)[0].no)}
    details = f"{name} in {where}: exit {result.returncode}\n{outcomes}\n{result.stdout}"
    tally.tried += 1
    tally.check(result.returncode == 4, "other exit code than 4", details)
    tally.check(outcomes.pop("c1", None) is Outcome.ERROR, "not an error", details)
    tally.check(set(outcomes.values()) == {Outcome.PASSED}, "another trial was changed", details)
    shutil.rmtree(project.parent)


def secrets(soak: Soak) -> None:
    """Put secrets into questions, answers, arguments, messages, names and expectations, and look for pieces of them in
    all that is written."""
    tally, dice = soak.tally("a secret in everything that is recorded", "runs"), soak.dice
    project = soak.copy()
    secret, expected = ("ghp_" + "".join(dice.choices(string.ascii_letters + string.digits, k=36)) for _ in range(2))
    pieces = {token[at : at + 10] for token in (secret, expected) for at in range(4, 30)}
    (project / "leaking.py").write_text(LEAKING.format(secret=secret))
    cases = "".join(
        f"  - {{id: {word}, input: {word} {secret}, expected: {word} {expected}}}\n" for word in ("say", "raise")
    )
    head = "name: leaks\nagent: leaking.py:agent\nevaluators: [ExactMatch]\ncases:\n"
    (project / "leaks.yaml").write_text(head + cases)
    reports = [f"--{kind}=report.{kind}" for kind in ("html", "junit", "json", "md")]
    commands: list[tuple[str, ...]] = [
        ("test", "leaks.yaml", *reports, "-v"),
        ("rescore", "last"),
        ("show", "last", "-v"),
    ]
    commands += [("runs", "export", "last", "-o", "exported.jsonl"), ("trace", "list"), ("compare", "last", "last")]
    for command in commands:
        result = run(project, *command, store="leaks")
        is_masked = not any(piece in result.stdout for piece in pieces)
        tally.check(is_masked, "secret printed", f"{command}\n{result.stdout}")
        tally.check("Traceback (most" not in result.stdout, "traceback", f"{command}\n{result.stdout}")
    for path in project.rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc") and path.name != "leaks.yaml":
            content = path.read_bytes()
            tally.check(not any(piece.encode() in content for piece in pieces), "secret written", str(path))
    tally.tried += 1
    shutil.rmtree(project.parent)


ATTACKS: dict[str, Callable[[Soak], None]] = {
    "kill": kill,
    "resume": resume,
    "wal": wal,
    "disk": disk,
    "concurrent": concurrent,
    "many": many,
    "load": load,
    "messages": messages,
    "environment": environment,
    "tamper": tamper,
    "limits": limits,
    "secrets": secrets,
}


if __name__ == "__main__":
    sys.exit(main())
