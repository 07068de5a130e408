"""How long `proctor view` takes to open the page of a large run, compared with an earlier version in the same run.

    python benchmarks/viewer.py --before REF [--trials 10000 50000]

Both versions run the same suite and then serve it. The viewer is restarted for each measurement: `first` is the page
of a run that it has not read yet, `again` the same page later, `words` the search for a word. Figures are medians
of the rounds, which alternate between the versions, and what counts is their ratio. It is the CPU time of the viewer's
process: on a machine that does nothing else it is the time that a person waits.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPEATS = 5
ROUNDS = 3
AGENT = """
def agent(question):
    number = int(question.split()[1])
    return "No." if number % 10 == 0 else f"The answer to {question} is on its way, within five working days."
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--before", metavar="REF", required=True, help="the commit to compare with")
    options.add_argument("--trials", type=int, nargs="+", default=[10_000, 50_000])
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = Path(folder, "before")
        before.mkdir()
        archive = subprocess.run(["git", "archive", chosen.before, "src"], cwd=ROOT, check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", before], input=archive.stdout, check=True)
        print("| trials | page | before | after | after / before |\n|---|---|---|---|---|")
        for trials in chosen.trials:
            places = {
                "before": make_run(Path(folder, f"before-{trials}"), before / "src", trials),
                "after": make_run(Path(folder, f"after-{trials}"), ROOT / "src", trials),
            }
            sources = {"before": before / "src", "after": ROOT / "src"}
            seconds: dict[tuple[str, str], list[float]] = {}
            for _ in range(ROUNDS):
                for version, place in places.items():
                    for page, took in measure(place, sources[version]).items():
                        seconds.setdefault((page, version), []).append(took)
            for page in ("first", "again", "words"):
                old, new = (statistics.median(seconds[page, version]) for version in ("before", "after"))
                print(f"| {trials:,} | {page} | {old:.2f} s | {new:.2f} s | {new / max(old, 0.01):.1f} |", flush=True)


def make_run(folder: Path, source: Path, trials: int) -> Path:
    """A folder with one stored run."""
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT, encoding="utf-8")
    head = "name: large\nagent: agent.py:agent\nevaluators: [ExactMatch, LevenshteinMatch]\ncases:\n"
    case = "- {{id: case-{0}, input: question {0}, tags: [t{1}], expected: The answer is on its way.}}\n"
    cases = [case.format(at, at % 7) for at in range(trials // REPEATS)]
    (folder / "suite.yaml").write_text(head + "".join(cases), encoding="utf-8")
    command = [sys.executable, "-m", "proctor", "test", "suite.yaml", "--repeat", str(REPEATS), "-q"]
    subprocess.run(command, cwd=folder, env=environment(source), stdout=subprocess.DEVNULL, check=False)
    return folder


def measure(folder: Path, source: Path) -> dict[str, float]:
    """Seconds for each page, of a viewer that was just started."""
    listed = subprocess.run(
        [sys.executable, "-m", "proctor", "runs", "--json"],
        cwd=folder, env=environment(source), capture_output=True, text=True, check=True,
    )  # fmt: skip
    run = json.loads(listed.stdout)[0]["id"]
    command = [sys.executable, "-m", "proctor", "view", "--no-open"]
    viewer = subprocess.Popen(command, cwd=folder, env=environment(source), stdout=subprocess.PIPE, text=True)
    try:
        assert viewer.stdout is not None
        match = re.search(r"(http://127\.0\.0\.1:\d+)/\S*", viewer.stdout.readline())
        assert match is not None
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(f"{match[1]}/assets/viewer.js?{match[0].partition('?')[2]}").close()  # exchanges the token
        page = f"{match[1]}/runs/{run}"
        places = {"first": page, "again": page, "words": f"{page}?q=working"}
        return {name: fetch(browser, place, viewer.pid) for name, place in places.items()}
    finally:
        viewer.send_signal(signal.SIGINT)
        viewer.wait(30)


def fetch(browser: urllib.request.OpenerDirector, address: str, process: int) -> float:
    """The seconds of CPU that a process takes to answer."""
    start = cpu_seconds(process)
    with browser.open(address, timeout=300) as answer:
        assert b"<h2>Cases</h2>" in answer.read()
    return cpu_seconds(process) - start


def cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # user and system time


def environment(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}


if __name__ == "__main__":
    main()
