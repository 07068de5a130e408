"""What it costs to start: `proctor --help` and one case, in units of `python -c pass` of the same interpreter.

Measured in an environment that holds the base install and nothing else, with everything compiled and in the file cache.
"""

from __future__ import annotations

from pathlib import Path

from environments import Interpreter
from material import write_one_case_files
from measuring import Contender, clean_environment, compare
from table import Row, at_most

NOTHING = "python -c pass"
HELP = "proctor --help"
NAMES_ITS_AGENT = ("native YAML", "pixie JSON")


def measure_startup(proctor: Interpreter, folder: Path, rounds: int) -> list[Row]:
    files = write_one_case_files(folder)
    environment = clean_environment()
    command = proctor.script("proctor")
    contenders = [
        Contender(NOTHING, [str(proctor.python), "-c", "pass"], folder, environment),
        Contender(HELP, [*command, "--help"], folder, environment),
    ]
    for title, path in files.items():
        agent = [] if title in NAMES_ITS_AGENT else ["--agent", "agents.py:echo"]
        contenders.append(Contender(title, [*command, "test", path.name, *agent], folder, environment))
    costs = compare(contenders, rounds)
    ratios = {name: cost.cpu / costs[NOTHING].cpu for name, cost in costs.items()}
    first, *others = files
    rows = [at_most(HELP, ratios[HELP], 6), at_most(f"proctor test, one case ({first})", ratios[first], 11)]
    return rows + [Row(f"- the same ({title})", f"{ratios[title]:.2f}x") for title in others]
