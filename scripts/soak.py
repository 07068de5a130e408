"""Attacks Proctor for a while and prints what came of it as a table; see `scripts/soak.sh`."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

AGENT = """
import os, random, time

def agent(question):
    time.sleep(random.uniform(0.005, 0.03))
    return question

def huge(question):
    return "x" * 200_000_000

def stream(question):
    while True:
        yield "x" * 1000

def loud(question):
    raise ValueError("x" * 100_000_000)

def exits(question):
    os._exit(0)
"""
CASES = 40


class Soak:
    """One run of all attacks, in turn, until the time or the counts are used up."""

    def __init__(self, minutes: float, kills: int, inputs: int) -> None:
        self.end = time.monotonic() + minutes * 60
        self.kills, self.inputs = kills, inputs
        self.rows: list[tuple[str, str, str]] = []
        self.bad = 0
        seed = int(os.environ.get("SOAK_SEED", time.time_ns() % 1_000_000))
        print(f"SOAK_SEED={seed} repeats the choices of this run", file=sys.stderr)
        self.random = random.Random(seed)

    def run(self) -> int:
        with tempfile.TemporaryDirectory() as folder:
            self.here = Path(folder)
            (self.here / "agents.py").write_text(AGENT)
            for attack in (self.memory, self.disk, self.load, self.fuzz, self.kill):
                attack()
        print("| attack | tried | what came of it |\n|---|---|---|")
        for row in self.rows:
            print("| " + " | ".join(row) + " |")
        print(f"\n{self.bad} did not hold")
        return 1 if self.bad else 0

    def tell(self, attack: str, tried: str, result: str, bad: int = 0) -> None:
        self.bad += bad
        self.rows.append((attack, tried, result))
        print(f"{attack}: {tried}: {result}", file=sys.stderr, flush=True)

    def suite(self, count: int, agent: str = "agents.py:agent") -> None:
        lines = [f"name: soak\nagent: {agent}\nevaluators: [ExactMatch]\ncases:"]
        lines += [f"  - {{id: c{n}, input: q{n}, expected: q{n}}}" for n in range(count)]
        (self.here / "suite.yaml").write_text("\n".join(lines) + "\n")

    def start(self, *more: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "proctor", "test", "suite.yaml", *more]
        return subprocess.Popen(
            command, cwd=self.here, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
        )

    def kill(self) -> None:
        """Kill runs at any moment, as a whole or the worker alone, and resume them until they are finished."""
        from proctor.results.store import Store

        self.suite(CASES)
        kills = runs = lost = twice = green = 0
        while kills < self.kills and time.monotonic() < self.end:
            printed: set[str] = set()
            runs += 1
            store_folder = self.here / f"store{runs}"
            while True:
                process = self.start("-j", "3", "--store", str(store_folder), "--resume")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(self.random.uniform(0.1, 2.5))
                ended = process.poll() is not None
                if not ended:
                    kills += 1
                    _kill(process, worker=self.random.random() < 0.5)
                out = process.communicate(timeout=60)[0]
                printed |= set(re.findall(r"PASS   soak/(c\d+)", out))
                green += process.returncode == 0 and "PASSED" not in out
                if process.returncode == 0 or kills >= 2 * self.kills:
                    break  # a worker that is killed after its verdict has given it
            store = Store(store_folder, create=False)
            kept = Counter((row.no, t.case.id, t.number) for row in store.runs() for t in store.trials(row.no))
            lost += len(printed - {case for _, case, _ in kept})
            twice += sum(count > 1 for count in kept.values())
            store.close()
        result = f"{lost} trials lost that were printed, {twice} kept twice, {green} exits of 0 without a verdict"
        attack = "`kill -9` of the command or of its worker, then `--resume`"
        self.tell(attack, f"{kills} kills", result, lost + twice + green)

    def load(self) -> None:
        self.suite(2000)
        process = self.start("-j", "300", "-q", "--store", str(self.here / "load"))
        process.communicate(timeout=900)
        from proctor.results.store import Store

        store = Store(self.here / "load", create=False)
        trials = list(store.trials(store.runs(1)[0].no))
        store.close()
        crossed = sum(trial.replies[0].text != trial.case.turns[0].input for trial in trials)
        bad = int(process.returncode != 0 or len(trials) != 2000) + crossed
        result = f"exit {process.returncode}, {crossed} answers crossed"
        self.tell("load: 2,000 trials, 300 at once", f"{len(trials):,} trials", result, bad)

    def disk(self) -> None:
        """Files may grow to a limit only, as on a disk that fills up."""
        self.suite(200)
        green, tried = 0, 0
        for size in (1_000, 20_000, 60_000, 120_000, 200_000, 300_000):
            tried += 1
            store = self.here / f"disk{size}"

            def limit(size: int = size) -> None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

            process = self.start("-q", "--store", str(store), preexec_fn=limit)
            out = process.communicate(timeout=300)[0]
            whole = "PASSED" in out and "kept in" in out
            green += (process.returncode == 0 and not whole) or "Traceback" in out
        self.tell(
            "a disk that is full after 1 to 300 KB", f"{tried} runs", f"{green} passed or ended in a traceback", green
        )

    def memory(self) -> None:
        """Peak memory of each hostile input."""
        merge = "\n".join(["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 41))])
        (self.here / "bomb.yaml").write_text(merge + "\n")
        with (self.here / "text.json").open("w") as file:  # in pieces: a child begins with the memory of this process
            file.write('{"cases": [{"input": "')
            for _ in range(500):
                file.write("x" * 100_000)
            file.write('", "nonsense": 1}]}')
        (self.here / "deep.json").write_text("[" * 1_000_000)
        (self.here / "zero.json").symlink_to("/dev/zero")
        os.mkfifo(self.here / "pipe.yaml")
        validate = {
            "40 levels of YAML merges": "bomb.yaml",
            "50 MB in one JSON string": "text.json",
            "a million levels of JSON": "deep.json",
            "/dev/zero as a suite": "zero.json",
            "a pipe as a suite": "pipe.yaml",
        }
        for name, file in validate.items():
            self._measure(name, ["dataset", "validate", file], {2})
        for name, agent in {
            "an answer of 200 MB": "agents.py:huge",
            "an endless stream": "agents.py:stream",
            "an exception of 100 MB": "agents.py:loud",
            "`os._exit(0)`": "agents.py:exits",
            "a command that prints without end": "cmd:yes",
        }.items():
            self.suite(1)
            self._measure(name, ["test", "suite.yaml", "--agent", agent, "--store", "m"], {1, 4})
        backtracking = "evaluators: [{Regex: {pattern: '(a|aa)+$'}}]\nagent: nop\ncases: [{input: a, expected: a}]\n"
        (self.here / "suite.yaml").write_text(
            backtracking.replace("nop", "{python: 'agents.py:agent'}").replace("input: a", "input: " + "a" * 60 + "b")
        )
        self._measure("a pattern that backtracks", ["test", "suite.yaml", "--store", "m"], {1, 4})

    def _measure(self, name: str, arguments: list[str], codes: set[int]) -> None:
        process = subprocess.Popen(
            [sys.executable, "-m", "proctor", *arguments],
            cwd=self.here,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert process.stdout is not None
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        bad = int(process.returncode not in codes or b"Traceback" in out)
        self.tell(name, "1", f"exit {process.returncode}, peak memory {usage.ru_maxrss / 1024:.0f} MB", bad)

    def fuzz(self) -> None:
        share = self.inputs // 5
        for name, work in _fuzzers(self.here, self.random).items():
            done, broken, slowest = self._fuzz_one(work, share)
            self.tell(f"fuzzed {name}", f"{done:,} inputs", f"{broken} tracebacks, slowest {slowest:.2f} s", broken)

    def _fuzz_one(self, work: Callable[[], None], share: int) -> tuple[int, int, float]:
        done, broken, slowest = 0, 0, 0.0
        began = time.monotonic()
        allowed = max(5.0, (self.end - began) / 8)
        while done < share and time.monotonic() - began < allowed:
            clock = time.perf_counter()
            signal.alarm(20)
            try:
                work()
            except Exception:
                broken += 1
                if broken < 5:
                    traceback.print_exc()
            signal.alarm(0)
            slowest = max(slowest, time.perf_counter() - clock)
            done += 1
        return done, broken, slowest


def _kill(process: subprocess.Popen[str], *, worker: bool) -> None:
    """Kill the command, or the process in which it runs the agent."""
    if worker:
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:
                os.kill(int(child), signal.SIGKILL)
            return
    process.kill()


WORDS = "cases input expected turns name agent evaluators $regex $approx $subset tools args test_cases".split()
BITS = [
    *("{", "}", "[", "]", ":", ",", '"', "\n", "- ", "&a ", "*a", "<<: ", "!!python/object ", "\\", "\0", "\ud800"),
    *("::", "1e999", "NaN", "null", "true", "0" * 50, "sk-abcdefghijklmnopqrstuvwx", "password=", "é", "\u202e", "|"),
]


def _fuzzers(here: Path, dice: random.Random) -> dict[str, Callable[[], None]]:
    from pydantic import BaseModel

    from proctor.base.errors import ProctorError
    from proctor.base.secrets import mask
    from proctor.cases.formats.loading import load_file
    from proctor.cases.matchers import parse
    from proctor.judging.judge import InvalidReply, Question
    from proctor.judging.judge_replies import read_reply
    from proctor.tracing.trace_files import from_resources

    class Verdict(BaseModel):
        score: float
        reason: str = ""

    question = Question("soak", 1, "judge", {"answer": "x"}, Verdict)
    seeds = [
        "name: a\nagent: nop\ncases:\n"
        '  - {id: a, input: hello, expected: {tools: [{name: t, args: {x: {$regex: "a+"}}}]}}\n',
        '{"eval_set_id": "x", "eval_cases": [{"eval_id": "a", "conversation": '
        '[{"user_content": {"parts": [{"text": "hi"}]}}]}]}',
        '{"name": "x", "entries": [{"eval_input": "a", "expected_output": "b"}]}',
        "name: x\nmodel: {provider: openai, name: gpt}\ninstructions: {inline: hi}\n"
        "test_cases: [{name: a, input: b}]\n",
        '{"id": "a", "input": "b", "expected": "c"}\n{"id": "b", "input": "b"}\n',
        "id,input,expected\na,b,c\n",
    ]
    endings = [".yaml", ".json", ".json", ".yaml", ".jsonl", ".csv"]

    def garbled(text: str) -> str:
        letters = list(text)
        for _ in range(dice.randint(1, 6)):
            at = dice.randrange(len(letters) + 1)
            match dice.randrange(4):
                case 0:
                    letters[at:at] = dice.choice(BITS)
                case 1:
                    del letters[at : at + dice.randint(1, 8)]
                case 2:
                    letters[at:at] = letters[max(0, at - dice.randint(1, 30)) : at]
                case _:
                    letters[at:at] = dice.choice(WORDS)
        return "".join(letters)

    def anything(depth: int = 0) -> Any:
        kind = dice.randrange(9 if depth < 4 else 6)
        if kind < 6:
            return [
                None,
                True,
                dice.random() * 10,
                dice.randint(-(2**70), 2**70),
                dice.choice(BITS),
                dice.choice(WORDS),
            ][kind]
        if kind == 6:
            return [anything(depth + 1) for _ in range(dice.randrange(4))]
        return {
            dice.choice(WORDS + BITS + ["$equals", "$one_of", "$ignore", "$fuzzy", "tolerance"]): anything(depth + 1)
            for _ in range(dice.randrange(4))
        }

    def readers() -> None:
        number = dice.randrange(len(seeds))
        path = here / f"fuzz{endings[number]}"
        path.write_bytes(garbled(seeds[number]).encode("utf-8", "surrogatepass"))
        with contextlib.suppress(ProctorError):
            load_file(path)

    def matchers() -> None:
        with contextlib.suppress(ValueError, ProctorError):
            parse({dice.choice(["$regex", "$approx", "$subset", "$one_of", "$fuzzy", "$equals"]): anything()}).mismatch(
                anything()
            )

    span = {
        "resourceSpans": [
            {
                "scopeSpans": [
                    {
                        "spans": [
                            {
                                "traceId": "a",
                                "spanId": "b",
                                "name": "n",
                                "startTimeUnixNano": "1",
                                "endTimeUnixNano": "2",
                                "attributes": [{"key": "k", "value": {"stringValue": "v"}}],
                            }
                        ]
                    }
                ]
            }
        ]
    }

    def otlp() -> None:
        text = garbled(json.dumps(span))
        with contextlib.suppress(ValueError, ProctorError, RecursionError):
            from_resources(json.loads(text) if dice.random() < 0.7 else anything())

    def replies() -> None:
        with contextlib.suppress(InvalidReply):
            read_reply(garbled('Sure. ```json\n{"score": 0.5, "reason": "it is \\"so\\""}\n```'), question)

    def secrets() -> None:
        mask(
            garbled(
                "Authorization: Bearer sk-proj-abcdefghijklmnopqrstuvwxyz012345 password='hunter22' https://u:p@h/?token=abc"
            )
        )

    return {
        "suites in six formats": readers,
        "matchers": matchers,
        "OTLP traces": otlp,
        "judges' replies": replies,
        "texts with secrets": secrets,
    }


if __name__ == "__main__":
    sys.exit(Soak(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])).run())
