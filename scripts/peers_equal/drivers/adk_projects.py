"""Writes the cases of `adk_cases.py` as files, the same for both tools: packages with agents, EvalSets with configs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from adk_agents import SCRIPTS, module_text

DEFAULT_METRICS = ("tool_trajectory_avg_score", "response_match_score")


def write_folders(folders: dict[str, list[dict[str, Any]]]) -> dict[str, Path]:
    """Write folders with one file per case; returns their paths."""
    cases = {f"{name} {number}": case for name, items in folders.items() for number, case in enumerate(items)}
    write_project(cases, "folders")
    paths = {}
    for number, (name, items) in enumerate(folders.items()):
        paths[name] = Path(f"folder_{number}")
        paths[name].mkdir()
        for index, case in enumerate(items):
            (paths[name] / f"{index}.test.json").write_text(as_text(case["data"]), encoding="utf-8")
    return paths


def write_project(cases: dict[str, Any], prefix: str = "case") -> dict[str, Path]:
    """Write everything into the working folder; returns the file of each case."""
    scripts = {text: script for case in cases.values() for text, script in case["scripts"].items()}
    sys.path.insert(0, str(Path.cwd()))
    SCRIPTS.update(scripts)
    for name in {case["agent"] for case in cases.values()}:
        package = Path(f"{name}_agent")
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("")
        (package / "agent.py").write_text(module_text(name))
    return {name: write_case(f"{prefix}_{number:03}", case) for number, (name, case) in enumerate(cases.items())}


def write_case(folder: str, case: dict[str, Any]) -> Path:
    Path(folder).mkdir(exist_ok=True)
    for name, text in case["files"].items():
        Path(name).write_text(text)
    file = Path(folder) / "case.test.json"
    file.write_text(as_text(case["data"]), encoding="utf-8")
    if case["config"] is not None:
        (Path(folder) / "test_config.json").write_text(as_text(case["config"]), encoding="utf-8")
    return file


def as_text(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data)


def module_of(case: dict[str, Any]) -> str:
    return f"{case['agent']}_agent.agent"


def metrics_of(case: dict[str, Any]) -> tuple[str, ...]:
    """The metrics of a case whose scores are compared."""
    config = case["config"]
    return tuple(config["criteria"]) if isinstance(config, dict) else DEFAULT_METRICS


def means(scores: dict[str, list[float]], case: dict[str, Any]) -> dict[str, float]:
    """The mean score of each metric of a case, rounded."""
    return {
        name: round(sum(values) / len(values), 6)
        for name, values in scores.items()
        if values and name in metrics_of(case)
    }
