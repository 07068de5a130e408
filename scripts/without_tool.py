"""Runs the tests without some of the tools that Proctor ships, to check that a tool can be removed.

    python scripts/without_tool.py holodeck                       # all unit tests without it
    python scripts/without_tool.py adk pixie -- -m unit tests/cli # these tests without both
    python scripts/without_tool.py all                            # without any of them
    python scripts/without_tool.py all --naming -- -m unit -n 2   # only the test files that name a tool

It copies the repository to a temporary folder and deletes there, for each tool, its folder in src/proctor, its line in
`proctor.plugins.SHIPPED` and its folder in tests/. The rest must pass. Tests elsewhere that use a tool say so with
`@pytest.mark.needs("holodeck")`; they are deselected if the tool is not shipped, and the summary says how many.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = {
    "adk": "compat/adk",
    "deepeval": "compat/deepeval",
    "holodeck": "compat/holodeck",
    "pixie": "compat/pixie",
    "mutation": "mutation",
    "calibration": "calibration",
}
"""Each tool, and its folder in src/proctor and in tests/."""


def main() -> int:
    words, _, pytest_arguments = _split(sys.argv[1:])
    parser = argparse.ArgumentParser(usage="without_tool.py NAME... [-- pytest arguments]")
    parser.add_argument("names", nargs="+", choices=(*TOOLS, "all"), metavar="NAME")
    parser.add_argument("--naming", action="store_true", help="only the test files that name a tool or look tools up")
    arguments = parser.parse_args(words)
    names = arguments.names
    tools = list(TOOLS) if "all" in names else names
    with tempfile.TemporaryDirectory(prefix="proctor-without.") as folder:
        copy = Path(folder).resolve() / "proctor"
        copy_repository(copy)
        for tool in tools:
            remove(tool, copy)
        files = naming_tools(copy) if arguments.naming else []
        return run_tests(copy, [*(pytest_arguments or ["-m", "unit"]), *files])


def _split(words: list[str]) -> tuple[list[str], str, list[str]]:
    """The arguments before and after `--`."""
    index = words.index("--") if "--" in words else len(words)
    return words[:index], "--", words[index + 1 :]


def copy_repository(copy: Path) -> None:
    """Copy the files that git tracks or would add, as they are in the working folder."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():  # a deleted file is listed until the deletion is staged
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)


def remove(tool: str, copy: Path) -> None:
    """Delete a tool's folder, its line in `SHIPPED` and its tests."""
    shutil.rmtree(copy / "src" / "proctor" / TOOLS[tool])
    shutil.rmtree(copy / "tests" / TOOLS[tool])
    declarations = copy / "src" / "proctor" / "plugins.py"
    lines = declarations.read_text(encoding="utf-8").splitlines(keepends=True)
    module = f"proctor.{TOOLS[tool].replace('/', '.')}.plugin"
    others = [line for line in lines if line.strip() != f'"{module}",']
    if len(lines) - len(others) != 1:
        raise SystemExit(f"plugins.py has {len(lines) - len(others)} lines with only {module} in them, not one")
    declarations.write_text("".join(others), encoding="utf-8")


def naming_tools(copy: Path) -> list[str]:
    """The files of tests that name a tool or look tools up. A test that misses a removed tool is in one of them."""
    words = "|".join([*TOOLS, "mutate", "calibrate", r"proctor\.plugins", "import plugins"])
    named = re.compile(f"(?<![a-z])({words})(?![a-z])", re.IGNORECASE)
    files = sorted((copy / "tests").rglob("test_*.py"))
    return [str(path.relative_to(copy)) for path in files if named.search(path.read_text(encoding="utf-8"))]


def run_tests(copy: Path, pytest_arguments: list[str]) -> int:
    """Run pytest in the copy; returns its exit code."""
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    command = [sys.executable, "-c", "import proctor; print(proctor.__file__)"]
    location = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=True).stdout
    if not Path(location.strip()).is_relative_to(copy):
        raise SystemExit(f"the tests would use {location.strip()}, which is not the copy in {copy}")
    command = [sys.executable, "-m", "pytest", *pytest_arguments]
    return subprocess.run(command, cwd=copy, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
