"""Every example in the documentation is executed.

A fenced block with `file=NAME` is written to the page's own folder; a `console` block is typed there, line by line. A
block's commands must exit as `exit=N` says (0 if it says nothing), and each line of output it shows must be there, `…`
standing for anything. A block with `needs=NAME` is run where that package is installed, as by `make frameworks`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from repository import ROOT

ROOT = ROOT
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)


@dataclass
class Block:
    language: str
    options: dict[str, str]
    text: str


def blocks(page: Path) -> list[Block]:
    found = []
    for _, info, text in FENCE.findall(page.read_text(encoding="utf-8")):
        language, *words = info.split() or [""]
        found.append(Block(language, dict(word.split("=", 1) for word in words if "=" in word), text))
    return found


def runnable(page: Path) -> bool:
    return any(block.language == "console" for block in blocks(page))


@pytest.mark.parametrize("page", [p for p in PAGES if runnable(p)], ids=lambda page: page.name)
def test_the_examples_of_a_page_do_what_the_page_says(page: Path, tmp_path: Path) -> None:
    environment = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        "HOME": str(tmp_path / "home"),
        "PYTHONIOENCODING": "utf-8",
        "PROCTOR_EXAMPLES": str(ROOT / "examples"),
    }
    (tmp_path / "home").mkdir()
    work = tmp_path / "work"
    work.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")
    for block in blocks(page):
        if "file" in block.options:
            target = work / block.options["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "console" and "norun" not in block.options:
            if "needs" in block.options:
                pytest.importorskip(block.options["needs"])
            type_in(block, work, environment)


def type_in(block: Block, work: Path, environment: dict[str, str]) -> None:
    expected_code = int(block.options.get("exit", "0"))
    command, shown = "", []
    for line in [*block.text.splitlines(), "$ "]:
        if not line.startswith("$ "):
            shown.append(line)
            continue
        if command:
            check(command, shown, expected_code, work, environment)
        command, shown = line[2:], []


def check(command: str, shown: list[str], code: int, work: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, shell=True, cwd=work, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=120
    )
    output = done.stdout + done.stderr
    assert done.returncode == code, f"{command} exited {done.returncode}:\n{output}"
    lines = [" ".join(line.split()) for line in output.splitlines()]
    for line in shown:
        if line.strip() in ("", "…"):
            continue
        pattern = re.escape(" ".join(line.split())).replace("…", ".*")
        assert any(re.fullmatch(pattern, real) for real in lines), f"{command} does not print {line!r}:\n{output}"


def test_every_link_to_a_file_of_the_repository_leads_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)\s]*)?(?: \"[^\"]*\")?\)", page.read_text(encoding="utf-8")):
            if "://" not in target and not target.startswith("generated/"):  # `make docs` writes those, and checks them
                assert (page.parent / target).exists(), f"{page.name}: {target}"
