"""Run an ADK-TS agent through the project that `proctor init --template adk_ts` writes, and compare the verdicts.

    PYTHONPATH=scripts python -m typescript_cases                     # makes the project, in .typescript/
    PYTHONPATH=scripts python -m typescript_cases --project FOLDER    # a project with its packages

Prints each verdict that is not as the documentation says, and the count. Exits with 1 if fewer than 95 % are right, or
if a case passes that must not. It needs Node and npm.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from proctor.base.json_data import fingerprint
from typescript_cases.cases import DocumentedCase, documented_cases

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / ".typescript"
AGENT = "serve:node --import tsx proctor-bridge.cjs src/documented.ts"
LEAST = 0.95


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, default=None)
    project = parser.parse_args().project
    project = make_project(FOLDER) if project is None else project.resolve()
    cases = documented_cases()
    outcomes = run_cases(project, cases)
    wrong = [case for case in cases if (outcomes.get(case.id) == "passed") is not case.passes]
    for case in wrong:
        expected = "pass" if case.passes else "not pass"
        print(f"{case.id} must {expected}, and is {outcomes.get(case.id, 'missing')}")
    right, false_greens = len(cases) - len(wrong), sum(not case.passes for case in wrong)
    print(f"{right} of {len(cases)} verdicts are as documented; {false_greens} of the others passed and must not")
    return 0 if right >= LEAST * len(cases) and not false_greens else 1


def make_project(folder: Path) -> Path:
    """The project of the template, with its packages; those that are installed stay."""
    modules, kept = folder / "node_modules", folder.with_name(f"{folder.name}.node_modules")
    if modules.is_dir():
        modules.rename(kept)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "proctor", "init", str(folder), "--template", "adk_ts"], check=True)
    if kept.is_dir():
        kept.rename(modules)
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True)
    return folder


def run_cases(project: Path, cases: list[DocumentedCase]) -> dict[str, str]:
    """The outcome of each case by its id."""
    (project / "src" / "documented.ts").write_text((HERE / "agent.ts").read_text(encoding="utf-8"), encoding="utf-8")
    root = project / "documented"
    shutil.rmtree(root, ignore_errors=True)
    outcomes: dict[str, str] = {}
    for runs, group in _by_runs(cases).items():
        folder = root / f"runs-{runs}"
        names = write_cases(folder, group)
        report = folder / "report.json"
        command = ["test", str(folder), "--agent", AGENT, "--repeat", str(runs), "--json", str(report), "--quiet"]
        words = [sys.executable, "-m", "proctor", *command, "--retries", "0"]
        subprocess.run(words, cwd=project, check=False, capture_output=True)
        results = json.loads(report.read_text(encoding="utf-8"))
        cases_run = {(trial["suite"], trial["case"]["id"]): "passed" for trial in results["trials"]}
        cases_run |= {
            (failure["suite"], failure["case"]): failure["outcome"] for failure in results.get("failures", ())
        }
        outcomes |= {names.get(key, key[1]): outcome for key, outcome in cases_run.items()}
    return outcomes


def _by_runs(cases: list[DocumentedCase]) -> dict[int, list[DocumentedCase]]:
    groups: dict[int, list[DocumentedCase]] = defaultdict(list)
    for case in cases:
        groups[case.runs].append(case)
    return groups


def write_cases(folder: Path, cases: list[DocumentedCase]) -> dict[tuple[str, str], str]:
    """One folder with a file per criteria; returns the ids of legacy rows, which have no id of their own."""
    groups: dict[str, list[DocumentedCase]] = defaultdict(list)
    for case in cases:
        groups[("legacy-" if case.legacy else "") + fingerprint(case.criteria)[:8]].append(case)
    names: dict[tuple[str, str], str] = {}
    for name, group in groups.items():
        place = folder / name
        place.mkdir(parents=True)
        data = [case.to_json() for case in group]
        file = data if group[0].legacy else {"evalSetId": name, "creationTimestamp": 0, "evalCases": data}
        (place / f"{name}.test.json").write_text(json.dumps(file), encoding="utf-8")
        if group[0].criteria is not None:
            (place / "test_config.json").write_text(json.dumps({"criteria": group[0].criteria}), encoding="utf-8")
        if group[0].legacy:
            names |= {(name, f"eval-{index}"): case.id for index, case in enumerate(group)}
    return names


if __name__ == "__main__":
    os.environ.setdefault("NO_COLOR", "1")
    sys.exit(main())
