"""Makes the README's picture of the terminal from a real run of the example with its wrong agent."""

from __future__ import annotations

import sys
from pathlib import Path

import proctor
from proctor.reporting.svg import terminal_svg

EXAMPLE = Path(__file__).parent.parent / "examples" / "loan_advisor"


def main(target: Path) -> None:
    run = proctor.run(EXAMPLE / "suite.yaml", agent=f"{EXAMPLE / 'agent_wrong.py'}:agent")
    command = "proctor test suite.yaml --agent agent_wrong.py:agent"
    target.write_text(terminal_svg(run, proctor.judge(run), title="proctor", command=command), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
