"""Every peer on the same trivial cases in one table: CPU a case, start-up, memory, disk and files.

Each runs one case and many, with an agent that echoes, an exact comparison and an edit distance, its results kept on
disk. What is on disk is what its package manager installed, without Python or Node.js themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine import peer_contender
from environments import (
    HERE,
    NODE_PEERS,
    PEERS,
    TABLE_PEERS,
    Interpreter,
    installed_version,
    node_peer,
    node_version,
    peer,
)
from install_size import Installed, installed_by_npm, installed_by_pip
from material import question, write_jsonl
from measuring import Broken, Contender, clean_environment
from one_and_many import OneAndMany, Spent, compare_both
from table import Row

ROUNDS = 3
"""At most: the peers take minutes."""
Counted = Callable[[], Installed]


def measure_side_by_side(proctor: Interpreter, folder: Path, cases: int, rounds: int, *, peers: bool) -> list[Row]:
    """A row for each; a peer that cannot be installed, or does not do its work, says so in its row."""
    contenders = [(_proctor(proctor, folder, cases), partial(installed_by_pip, proctor))]
    rows: list[Row] = []
    for name in (*PEERS, *TABLE_PEERS, *NODE_PEERS) if peers else ():
        found = _npm_peer(name, folder, cases) if name in NODE_PEERS else _pip_peer(name, folder, cases)
        if found is None:
            rows.append(Row(f"- {name}", "not installed"))
            continue
        contenders.append(found)
    spent: list[tuple[Spent, Counted]] = []
    for contender, counted in contenders:
        try:
            spent.append((compare_both([contender], cases, min(rounds, ROUNDS))[contender.title], counted))
        except Broken as error:
            rows.append(Row(f"- {contender.title}", f"broke: {str(error).splitlines()[0]}"))
    # Files are counted last: the kernel takes what this process needs for the least that its children need.
    return rows + [it.told("trivial cases", str(counted())) for it, counted in spent]


def _proctor(proctor: Interpreter, folder: Path, cases: int) -> OneAndMany:
    place = folder / "proctor"
    place.mkdir()
    sizes = []
    for size in (1, cases):
        suite = write_jsonl(place / f"cases-{size}.jsonl", size, "echo")
        command = [*proctor.script("proctor"), "test", suite.name]
        sizes.append(Contender(f"proctor, {size}", command, place, clean_environment()))
    return OneAndMany("proctor", *sizes)


def _pip_peer(name: str, folder: Path, cases: int) -> tuple[OneAndMany, Counted] | None:
    interpreter = peer(name)
    if interpreter is None:
        return None
    title = f"{name} {installed_version(interpreter, name)}"
    sizes = (peer_contender(name, f"{title}, {size}", interpreter, folder, size) for size in (1, cases))
    return OneAndMany(title, *sizes), partial(installed_by_pip, interpreter)


def _npm_peer(name: str, folder: Path, cases: int) -> tuple[OneAndMany, Counted] | None:
    program = node_peer(name)
    if program is None:
        return None
    title = f"{name} {node_version(name)}"
    environment = clean_environment(
        PROMPTFOO_CONFIG_DIR=str(folder / "promptfoo-store"),
        PROMPTFOO_DISABLE_TELEMETRY="1",
        PROMPTFOO_DISABLE_UPDATE="1",
        PROMPTFOO_DISABLE_REMOTE_GENERATION="true",
    )
    options = ["--no-progress-bar", "--no-table", "--no-cache", "-j", "8"]
    sizes = []
    for size in (1, cases):
        file = folder / f"promptfoo-{size}.json"
        file.write_text(json.dumps(_promptfoo_config(size)), encoding="utf-8")
        sizes.append(
            Contender(f"{title}, {size}", [str(program), "eval", "-c", str(file), *options], folder, environment)
        )
    return OneAndMany(title, *sizes), partial(installed_by_npm, program)


def _promptfoo_config(cases: int) -> dict[str, object]:
    exact = {"type": "equals", "value": "{{question}}"}
    close = {"type": "levenshtein", "value": "{{question}}", "threshold": 5}
    return {
        "prompts": ["{{question}}"],
        "providers": [f"file://{HERE / 'peers' / 'echo_provider.js'}"],
        "defaultTest": {"assert": [exact, close]},
        "tests": [{"vars": {"question": question(number)}} for number in range(cases)],
    }
