"""`python -m proctor` and the `proctor` script: the command line, in a process of its own that a parent waits for."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

_RUNS_NOTHING = ("-h", "--help", "--version")


def main() -> NoReturn:
    """Nothing that only prints help needs a guard; for everything else it is there before anything is imported."""
    if "_PROCTOR_COMPLETE" in os.environ:
        from proctor.cli.completion import complete

        complete(os.environ["_PROCTOR_COMPLETE"])
        sys.exit(0)
    if len(sys.argv) < 2 or any(word in _RUNS_NOTHING for word in sys.argv[1:]):
        work()
    from proctor.base.guard import run_guarded

    run_guarded(work)


def work() -> NoReturn:
    """The command line in this process. What it imports stays to the end: looking for garbage in it finds nothing."""
    gc.disable()  # until the command is loaded
    from proctor.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
