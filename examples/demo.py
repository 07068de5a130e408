"""Runs the loan advisor's suite in all five formats, offline, and prints where the reports are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parent / "loan_advisor"
AGENT = f"{EXAMPLE / 'agent.py'}:agent"

SUITES = {
    "native": [EXAMPLE / "suite.yaml"],
    "keywords": [EXAMPLE / "keywords.json", "--agent", AGENT],
    "adk": [EXAMPLE / "adk", "--agent", AGENT],
    "pixie": [EXAMPLE / "pixie" / "dataset.json"],
    "holodeck": [EXAMPLE / "holodeck" / "agent.yaml"],
}


def main(folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    codes = {}
    for name, arguments in SUITES.items():
        print(f"\n=== the loan advisor's suite, {name} format ===\n", flush=True)
        codes[name] = _proctor(folder, name, arguments)
    print("\n=== control agents: oracle and nop ===\n", flush=True)
    oracle = _proctor(folder, "oracle", [EXAMPLE / "suite.yaml", "--agent", "oracle", "--quiet"])
    nop = _proctor(folder, "nop", [EXAMPLE / "suite.yaml", "--agent", "nop", "--quiet"])
    good = not any(codes.values()) and oracle == 0 and nop == 1
    print(f"\nThe formats {'agree' if len(set(codes.values())) == 1 else 'DISAGREE'}: " + ", ".join(codes))
    print(f"The oracle {'passes' if oracle == 0 else 'FAILS'} and nop, which gives no answers, {_fails(nop)}.")
    print(f"\nReports (HTML, Markdown, JSON, JUnit) are in {folder}/, results in {folder / 'results'}/.")
    print("All green." if good else "Something is wrong.")
    return 0 if good else 1


def _fails(code: int) -> str:
    return "fails, as it must" if code == 1 else "does NOT fail"


def _proctor(folder: Path, name: str, arguments: list[Path | str]) -> int:
    reports = [part for kind in ("md", "json", "html") for part in (f"--{kind}", folder / f"{name}.{kind}")]
    command = ["test", *arguments, *reports, "--junit", folder / f"{name}.xml", "--store", folder / "results"]
    return subprocess.run([sys.executable, "-m", "proctor", *map(str, command)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo-reports")))
