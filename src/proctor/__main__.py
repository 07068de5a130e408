"""`python -m proctor` and the `proctor` script: the command line, with a parent process if it runs users' code."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

from proctor.base.guard import exit_if_few_files_can_be_open, run_guarded, run_unguarded
from proctor.cli import main as command_line
from proctor.cli.commands import runs_user_code


def main() -> NoReturn:
    """Start the command line. The guard forks before a command, and with it anything heavy, is imported."""
    exit_if_few_files_can_be_open()
    if "_PROCTOR_COMPLETE" in os.environ:
        from proctor.cli.completion import complete

        complete(os.environ["_PROCTOR_COMPLETE"])
        sys.exit(0)
    if runs_user_code(sys.argv[1:]):
        run_guarded(work)
    else:
        run_unguarded(work)


GARBAGE_THRESHOLD = 20_000
"""New objects before Python looks for garbage; its default is 700. Loading a command creates some 300,000 objects that
all stay, and looking through them again and again took a tenth of the time of a short run."""


def work() -> NoReturn:
    """Run the command line in this process."""
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 100)
    try:
        command_line()
    finally:
        gc.freeze()  # at its end Python looks for garbage among all objects again, which took 0.3 s after each run


if __name__ == "__main__":
    main()
