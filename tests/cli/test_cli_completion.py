"""Completion: what is offered, that it costs little, and that real shells take it."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.cli import group
from proctor.cli.completion import candidates

Command = Callable[..., Any]

SUITE = """
name: shop
agent: agents.py:echo
cases:
  - {id: refund-lost, input: a, expected: a, tags: [money]}
  - {id: greeting two, input: a, expected: a, tags: [quick, money]}
  - {id: "odd\\nid", input: a, expected: a}
"""


@pytest.fixture
def shop(suite: Command, project: Path) -> Path:
    suite("shop.yaml", text=SUITE)
    (project / "notes.json").write_text("[1, 2")
    return project


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("proctor comp", ["compare", "completion"]),
        ("proctor test --repe", ["--repeat"]),
        ("proctor test --case ", ["refund-lost", "greeting two"]),
        ("proctor test --case ref", ["refund-lost"]),
        ("proctor test shop.yaml --case g", ["greeting two"]),
        ("proctor test --tag ", ["money", "quick"]),
        ("proctor approve shop.yaml --case r", ["refund-lost"]),
        ("proctor test shop.yaml::r", ["shop.yaml::refund-lost"]),
        ("proctor test gone.yaml::r", []),
        ("proctor test sh", [":file"]),
        ("proctor test --html ", [":file"]),
        ("proctor test -e Exa", ["ExactMatch"]),
        ("proctor list evaluators Faith", ["Faithfulness"]),
        ("proctor completion ", ["bash", "fish", "zsh"]),
        ("proctor baseline a", ["accept"]),
        ("proctor trace to", ["to-case"]),
        ("proctor show ", ["last"]),
        ("proctor nowhere --x", []),
        ("proctor test --case 'ref", ["refund-lost"]),
    ],
)
def test_what_is_here_is_offered(shop: Path, line: str, offered: list[str]) -> None:
    assert candidates(line) == offered


def test_runs_and_what_they_hold_are_offered(proctor: Command, shop: Path, tmp_path: Path) -> None:
    (shop / "deep").mkdir()
    (shop / "shop.yaml").rename(shop / "deep" / "kept.yaml")
    proctor("test", "deep/kept.yaml", "--agent", "agents.py:echo", "--name", "nightly")
    offered = candidates("proctor show ")
    assert offered[:2] == ["last", "nightly"]
    assert re.fullmatch(r"\d{8}-\d{6}-\w+", offered[2])
    assert candidates("proctor compare nightly n") == ["nightly"]
    assert candidates("proctor show last --case r") == ["refund-lost"]
    assert candidates("proctor runs --suite s") == ["shop"]


def test_options_mean_the_same_after_completing(shop: Path) -> None:
    candidates("proctor test --initial-session ")
    context = group.make_context("proctor", ["test", "--initial-session", "notes.json"])
    command = group.get_command(context, "test")
    assert command is not None
    values = command.make_context("test", ["--initial-session", "notes.json"], parent=context).params
    assert values["initial_session"] == Path("notes.json")


@pytest.mark.process
def test_completing_prints_no_traceback(shop: Path) -> None:
    script = "import sys\nfrom proctor.cli.completion import complete\ncomplete(sys.argv[1])\n"
    (shop / "proctor.toml").write_text("[[[")

    for line in ("proctor test --case ", "proctor sh", "proctor show "):
        done = subprocess.run(
            [sys.executable, "-c", script, line], capture_output=True, text=True, timeout=60, check=True, cwd=shop
        )
        assert "Traceback" not in done.stderr


OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


def _type(shell: list[str], setup: str, typed: str, wanted: str, project: Path, programs: Path) -> None:
    """Type something into an interactive shell on a terminal, and wait until `wanted` is on the screen."""
    terminal, inside = pty.openpty()
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    child = subprocess.Popen(
        [sys.executable, "-c", OWN_TERMINAL, *shell],
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        cwd=project,
        env={"PATH": path, "HOME": str(project), "TERM": "dumb", "PS1": "prompt> ", "LANG": "C.UTF-8"},
    )
    os.close(inside)
    try:
        os.write(terminal, f"{setup}; echo re''ady\n".encode())
        _until(terminal, r"(?m)^ready[\s\S]*prompt> ")
        os.write(terminal, f"{typed}\t".encode())
        _until(terminal, wanted, b"\t")
    finally:
        child.kill()
        child.wait()
        os.close(terminal)


def _until(terminal: int, pattern: str, again: bytes = b"") -> None:
    """Read what a shell shows until it fits; a key that a busy shell has missed is pressed `again`."""
    shown, end = "", time.monotonic() + 60
    while not re.search(pattern, shown):
        assert time.monotonic() < end, f"{pattern!r} never came:\n{shown}"
        if select.select([terminal], [], [], 5)[0]:
            shown += os.read(terminal, 4096).decode("utf-8", "replace").replace("\r", "")
        else:
            os.write(terminal, again)


@pytest.fixture
def installed(project: Path) -> Path:
    """A folder with a `proctor` program, as pip makes one."""
    folder = project / "bin"
    folder.mkdir()
    program = folder / "proctor"
    program.write_text(f"#!{sys.executable}\nfrom proctor.__main__ import main\nmain()\n")
    program.chmod(0o755)
    return folder


needs = {
    name: pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed here")
    for name in ("bash", "zsh", "fish")
}


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [("proctor test --case ref", "--case refund-lost "), ("proctor test shop.yaml::gr", r"::greeting\\ two ")],
)
@pytest.mark.process
@pytest.mark.parametrize(
    ("shell", "setup"),
    [
        pytest.param(["bash", "--norc", "--noprofile", "-i"], 'eval "$(proctor completion bash)"', marks=needs["bash"]),
        pytest.param(
            ["zsh", "-f", "-i"],
            'autoload -U compinit; compinit -u -D; eval "$(proctor completion zsh)"',
            marks=needs["zsh"],
        ),
    ],
    ids=["bash", "zsh"],
)
def test_a_real_shell_completes_a_case(
    shop: Path, installed: Path, shell: list[str], setup: str, typed: str, wanted: str
) -> None:
    _type(shell, setup, typed, re.escape(wanted).replace(r"\\\\", r"\\"), shop, installed)


@pytest.mark.process
@needs["fish"]
def test_fish_completes_cases_runs_and_files(shop: Path, installed: Path) -> None:
    script = "proctor completion fish | source\n" + "".join(
        f"complete -C {word!r}; echo ====\n"
        for word in ("proctor test --case ref", "proctor test shop.yaml::g", "proctor sho", "proctor test sho")
    )
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=shop,
        env={"PATH": f"{installed}{os.pathsep}{os.environ['PATH']}", "HOME": str(shop), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    cases, addresses, commands, files, _ = done.stdout.split("====\n")
    assert cases.split("\n")[0] == "refund-lost"
    assert addresses.split("\n")[0] == "shop.yaml::greeting two"
    assert commands == "show\n"
    assert "shop.yaml" in files
