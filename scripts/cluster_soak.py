"""Kills workers and the scheduler of a cluster in two network namespaces while a run goes on; see `cluster_soak.sh`.

Each namespace is a host with an address of its own. A first run loses workers, a second one its scheduler, and is then
resumed. Every case must be in the report exactly once, with its right outcome, and every line that was printed in it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

AGENT = """
import asyncio


async def agent(question):
    await asyncio.sleep(SECONDS)
    return question
"""
WRONG_EVERY = 50
"""Every so many cases one expects something else than it gets, so that the exit code is 1 and not by accident 0."""
HOSTS = ("10.77.0.1", "10.77.0.2")
PORT = 8786
QUIET = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "false", "DASK_LOGGING__DISTRIBUTED": "critical"}


def main() -> int:
    options = _parse()
    if (reason := not_permitted()) is not None:
        print(f"skipped: {reason}")
        return 77
    with two_hosts() as names, tempfile.TemporaryDirectory() as folder:
        soak = Soak(options, names, Path(folder))
        try:
            wrong = soak.run()
        finally:
            soak.end()
    for line in wrong:
        print(f"WRONG: {line}")
    print(f"{len(wrong)} did not hold")
    return 1 if wrong else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--every", type=float, default=3.0, help="seconds between two kills")
    parser.add_argument("--seconds", type=float, default=0.3, help="that the agent takes")
    parser.add_argument("--parallel", type=int, default=5)
    return parser.parse_args()


def not_permitted() -> str | None:
    """Why there can be no network namespaces here."""
    if shutil.which("ip") is None:
        return "there is no `ip` command (iproute2) to make network namespaces with"
    name = f"proctor-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces are not permitted here: {made.stderr.strip()}"
    subprocess.run(["ip", "netns", "delete", name], check=False)
    return None


@contextlib.contextmanager
def two_hosts() -> Iterator[tuple[str, str]]:
    """Two namespaces with a link between them and no way out."""
    names = f"proctor-{os.getpid()}-a", f"proctor-{os.getpid()}-b"
    ends = f"pr{os.getpid() % 100_000}a", f"pr{os.getpid() % 100_000}b"
    try:
        for name in names:
            _ip("netns", "add", name)
        _ip("link", "add", ends[0], "netns", names[0], "type", "veth", "peer", "name", ends[1], "netns", names[1])
        for name, end, address in zip(names, ends, HOSTS, strict=True):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", end)
            _ip("-n", name, "link", "set", end, "up")
            _ip("-n", name, "link", "set", "lo", "up")
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


class Soak:
    """One scheduler, some workers, and the runs that they are lost to."""

    def __init__(self, options: argparse.Namespace, names: tuple[str, str], here: Path) -> None:
        self.options = options
        self.names = names
        self.here = here
        self.scheduler: subprocess.Popen[Any] | None = None
        self.workers: list[subprocess.Popen[Any]] = []
        self.wrong: list[str] = []
        self.random = random.Random(int(os.environ.get("SOAK_SEED", "1")))
        (here / "agents.py").write_text(AGENT.replace("SECONDS", str(options.seconds)))
        lines = ["name: soak", "agent: agents.py:agent", "evaluators: [ExactMatch]", "cases:"]
        lines += [
            f"  - {{id: c{n}, input: q{n}, expected: {'other' if n % WRONG_EVERY == 0 else f'q{n}'}}}"
            for n in range(options.cases)
        ]
        (here / "suite.yaml").write_text("\n".join(lines) + "\n")

    def run(self) -> list[str]:
        self.start()
        self.losing_workers()
        self.losing_the_scheduler()
        return self.wrong

    def losing_workers(self) -> None:
        began, kills = time.monotonic(), 0
        test = self.test("first")
        self.wait_for_lines("first", 1)
        while test.poll() is None and kills < self.options.kills:
            time.sleep(self.options.every)
            kills += self.kill_one()
        code = test.wait(600)
        self.check("first", code, 1)
        if kills < self.options.kills:
            self.wrong.append(f"the run was over after {kills} kills")
        again = len(re.findall("since the worker", (self.here / "first.json").read_text()))
        lines = (self.here / "first.txt").read_text()
        print(
            f"{self.options.cases} cases on {self.options.workers} workers of 2 hosts, {kills} kills, "
            f"exit code {code}, {lines.count('asked again elsewhere')} workers seen to be lost, "
            f"{again} trials asked again, {time.monotonic() - began:.0f} s",
            flush=True,
        )

    def losing_the_scheduler(self) -> None:
        assert self.scheduler is not None
        test = self.test("second")
        self.wait_for_lines("second", self.options.cases // 5)
        self.scheduler.kill()
        code = test.wait(120)
        if code != 130:
            tail = (self.here / "second.txt").read_text()[-2000:]
            self.wrong.append(f"a run that lost its scheduler ended with {code}\n{tail}")
        before = self.printed("second")
        self.end()
        self.start()
        test = self.test("third", "--resume")
        resumed = test.wait(600)
        self.check("third", resumed, 1, before)
        print(
            f"scheduler killed after {len(before)} cases were printed: exit code {code}; "
            f"--resume made {len(self.printed('third'))} and ended with {resumed}",
            flush=True,
        )

    def start(self) -> None:
        address = f"tcp://{HOSTS[0]}:{PORT}"
        self.scheduler = self.on(
            0, "distributed.cli.dask_scheduler", "--host", HOSTS[0], "--port", str(PORT), "--no-dashboard"
        )
        self.workers = [
            self.on(
                number % 2,
                "distributed.cli.dask_worker",
                *(address, "--host", HOSTS[number % 2], "--no-dashboard", "--nthreads", "1", "--name", f"w{number}"),
                *("--local-directory", str(self.here / f"dask-{number}")),
            )
            for number in range(self.options.workers)
        ]

    def on(self, host: int, module: str, *arguments: str, output: IO[Any] | None = None) -> subprocess.Popen[Any]:
        command = ["ip", "netns", "exec", self.names[host], sys.executable, "-m", module, *arguments]
        target = subprocess.DEVNULL if output is None else output
        return subprocess.Popen(
            command, cwd=self.here, env=os.environ | QUIET, stdout=target, stderr=target, start_new_session=True
        )

    def test(self, name: str, *more: str) -> subprocess.Popen[Any]:
        arguments = ("test", "suite.yaml", "--cluster", f"tcp://{HOSTS[0]}:{PORT}", "-j", str(self.options.parallel))
        with (self.here / f"{name}.txt").open("w") as output:
            return self.on(0, "proctor", *arguments, "--json", f"{name}.json", *more, output=output)

    def kill_one(self) -> int:
        """End the process of one worker; its nanny, which is another process, starts a new one."""
        candidates = [pid for nanny in self.workers for pid in _worker_processes(nanny.pid)]
        if not candidates:
            return 0
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.random.choice(candidates), signal.SIGKILL)
            return 1
        return 0

    def wait_for_lines(self, name: str, count: int) -> None:
        end = time.monotonic() + 300
        while len(self.printed(name)) < count and time.monotonic() < end:
            time.sleep(0.1)

    def printed(self, name: str) -> set[str]:
        text = (self.here / f"{name}.txt").read_text()
        return set(re.findall(r"^(?:PASS|FAIL|ERROR)\s+soak/(c\d+)\s", text, re.MULTILINE))

    def check(self, name: str, code: int, expected: int, before: set[str] | None = None) -> None:
        if code != expected:
            tail = (self.here / f"{name}.txt").read_text()[-2000:]
            self.wrong.append(f"{name}: exit code {code} and not {expected}\n{tail}")
            return
        report = json.loads((self.here / f"{name}.json").read_text())
        trials = {trial["case"]["id"]: trial for trial in report["trials"]}
        counts = Counter(trial["case"]["id"] for trial in report["trials"])
        wanted = {f"c{n}" for n in range(self.options.cases)}
        if set(counts) != wanted or set(counts.values()) != {1}:
            self.wrong.append(f"{name}: {len(wanted - set(counts))} cases are missing, {counts.most_common(3)}")
        if lost := (self.printed(name) | (before or set())) - set(counts):
            self.wrong.append(f"{name}: {len(lost)} cases were printed and are not in the report")
        failed = {case for case, trial in trials.items() if trial["outcome"] != "passed"}
        if failed != {f"c{n}" for n in range(0, self.options.cases, WRONG_EVERY)}:
            self.wrong.append(f"{name}: {len(failed)} cases did not pass, among them {sorted(failed)[:5]}")

    def end(self) -> None:
        """End every process that was started here, with its group."""
        for process in [*self.workers, self.scheduler]:
            if process is not None and process.poll() is None:
                for pid in [process.pid, *_below(process.pid)]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.wait(30)
        self.workers, self.scheduler = [], None


def _below(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return [number for child in map(int, found) for number in (child, *_below(child))]


def _worker_processes(nanny: int) -> list[int]:
    """The processes below a nanny that are workers, and not what Python starts beside them."""
    found = []
    for pid in _below(nanny):
        with contextlib.suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


if __name__ == "__main__":
    sys.exit(main())
