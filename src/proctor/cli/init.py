"""`proctor init`: a first suite and an agent to try it on, both small enough to read at a glance."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path

import click

from proctor.base.errors import StoreError, UsageError
from proctor.cli.options_and_output import say

AGENT = '''"""A very small agent: it adds numbers with a tool and says hello."""

import re

import proctor


@proctor.tool
def add(a: float, b: float) -> float:
    return a + b


def agent(question: str) -> str:
    numbers = [float(n) for n in re.findall(r"-?[0-9]+(?:\\.[0-9]+)?", question)]
    if len(numbers) == 2:
        return f"The sum is {add(numbers[0], numbers[1]):g}."
    return "Hello! Give me two numbers and I will add them."
'''

SUITE = """# yaml-language-server: $schema=./suite.schema.json
name: first suite
agent: agent.py:agent
cases:
  - id: adds
    input: What is 2 plus 40?
    expected:
      contains: ["42"]
      tools:
        - name: add
          args: {a: 2, b: 40}

  - id: greets
    input: Hello!
    expected:
      contains: {any: [hello, hi]}
      tools: []
"""


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
def command(folder: Path) -> int:
    """Write agent.py, suite.yaml and the schema that lets editors complete it; nothing is overwritten."""
    schema = resources.files("proctor").joinpath("schemas/suite.schema.json").read_text(encoding="utf-8")
    files = {"agent.py": AGENT, "suite.yaml": SUITE, "suite.schema.json": schema}
    taken = [name for name in files if (folder / name).exists()]
    if taken:
        raise UsageError(f"{folder / taken[0]} exists already; give another folder: proctor init my_suite")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror or error}") from None
    say(f"wrote {', '.join(files)} to {folder}")
    say(f"now run: proctor test {shlex.quote(str(folder / 'suite.yaml'))}")
    return 0
