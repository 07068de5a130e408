"""Every example in the documentation is executed.

A fenced block with `file=NAME` is written to a folder that belongs to the page; the lines of a `console` block that
begin with `$ ` are run there in order. Each command must exit with the code that `exit=N` gives for its block (0 if
there is none), and must print every line that is shown below it; `…` inside a line matches anything. An output may
leave lines out, but must show at least one. A block with `needs=NAME` runs only if that package or program is
installed, as in `make frameworks`. One with `needs=npm` downloads packages, and runs only in `nox -s typescript`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from repository import ROOT

import proctor

DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.glob("*.md"), *(DOCS / "contributing").glob("*.md")])
FENCE = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?(?: \"[^\"]*\")?\)")


@dataclass
class Block:
    language: str
    options: dict[str, str]
    text: str

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """The commands of a `console` block, each with the lines of output below it."""
        command, shown = "", []
        for line in [*self.text.splitlines(), "$ "]:
            if not line.startswith("$ "):
                shown.append(line)
                continue
            if command:
                yield command, shown
            command, shown = line[2:], []


def blocks(page: Path) -> list[Block]:
    found = []
    for _, info, text in FENCE.findall(page.read_text(encoding="utf-8")):
        language, *words = info.split() or [""]
        found.append(Block(language, dict(word.split("=", 1) for word in words if "=" in word), text))
    return found


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


WITH_COMMANDS = [page for page in PAGES if any(block.language == "console" for block in blocks(page))]


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=page_name)
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
    # Only where it is used: a link to suites is an error for `proctor test` without a path.
    if "examples/" in page.read_text(encoding="utf-8"):
        (work / "examples").symlink_to(ROOT / "examples")
    missing: list[str] = []
    for block in blocks(page):
        if "file" in block.options:
            target = work / block.options["file"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            if (package := block.options.get("needs")) and not is_available(package):
                missing.append(package)
                continue
            if package == "npm":  # it has settings of its own there
                environment = {**os.environ, **environment, "HOME": os.environ["HOME"]}
            for command, shown in block.commands():
                check(command, shown, int(block.options.get("exit", "0")), work, environment)
    if missing:
        pytest.skip(f"all but the examples that need {', '.join(missing)} were run")


def is_available(package: str) -> bool:
    if package == "npm":
        return "PROCTOR_NPM" in os.environ
    return find_spec(package) is not None or shutil.which(package) is not None


def check(command: str, shown: list[str], code: int, work: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, shell=True, cwd=work, env=environment, capture_output=True, text=True, encoding="utf-8", timeout=300
    )
    output = done.stdout + done.stderr
    assert done.returncode == code, f"{command} exited {done.returncode}:\n{output}"
    lines = [" ".join(line.split()) for line in output.splitlines()]
    for line in shown:
        if line.strip() in ("", "…"):
            continue
        pattern = re.escape(" ".join(line.split())).replace("…", ".*")
        assert any(re.fullmatch(pattern, real) for real in lines), f"{command} does not print {line!r}:\n{output}"


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=page_name)
def test_an_output_shows_more_than_an_ellipsis(page: Path) -> None:
    for block in blocks(page):
        if block.language == "console":
            for command, shown in block.commands():
                hidden = "…" in map(str.strip, shown) and not any(line.strip(" …") for line in shown)
                assert not hidden, f"{page_name(page)} hides what `{command}` prints; show the lines that matter"


VERDICT = re.compile(r"(PASSED|FAILED|INCONCLUSIVE|ERROR) {1,3}\d|(Worse|Better|No change|No significant difference):")


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=page_name)
def test_a_verdict_is_shown_in_full(page: Path) -> None:
    """What a run or a comparison comes to is what its example is there for, so nothing of it is left out."""
    for block in blocks(page):
        if block.language == "console":
            for command, shown in block.commands():
                cut = [line for line in shown if VERDICT.match(line.strip()) and "…" in line]
                assert not cut, f"{page_name(page)} hides a part of the verdict of `{command}`: {cut[0]}"


def test_no_page_uses_a_former_name() -> None:
    """A former name still works, with a warning, so the examples alone would not show it."""
    imports = re.compile("^from proctor import (.+)", re.MULTILINE)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        names = set(re.findall(r"\bproctor\.([A-Z]\w+)", text))
        names.update(name for listed in imports.findall(text) for name in re.findall(r"\w+", listed))
        for name in sorted(names):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                getattr(proctor, name, None)
            assert not caught, f"{page_name(page)}: {caught[0].message}"


def test_every_link_to_a_file_of_the_repository_leads_somewhere() -> None:
    for page in PAGES:
        for target in LINK.findall(page.read_text(encoding="utf-8")):
            if "://" not in target and "generated/" not in target:  # `make docs` writes and checks those
                assert (page.parent / target).exists(), f"{page_name(page)}: {target}"
