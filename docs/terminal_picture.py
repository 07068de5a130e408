"""Makes the README's picture of the terminal from a real run: three cases of the example and an agent with a bug."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import proctor
from proctor.reporting.terminal.progress import terminal_svg

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "loan_advisor"
CASES = ("payment-basic", "eligibility-yes", "off-topic")


def main(target: Path) -> None:
    os.chdir(EXAMPLE)
    run = proctor.run("suite.yaml", agent="agent_wrong.py:agent", case=CASES)
    selected = " ".join(f"--case {name}" for name in CASES)
    command = f"proctor test suite.yaml --agent agent_wrong.py:agent {selected}"
    picture = terminal_svg(run, proctor.verdict(run), title="proctor", command=command, width=128)
    target.write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
