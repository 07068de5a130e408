"""Run a script in which `import deepeval`, `import pixie` or `import holodeck` gives Proctor's names.

On the command line: `python -m proctor.compat.aliases FILE`. In code: `install_aliases(["deepeval"])`. How it works is
described in `proctor.import_aliases`.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from proctor.base.errors import UsageError
from proctor.config import aliases_of
from proctor.import_aliases import import_names, install_aliases

__all__ = ["install_aliases", "run_script"]


def run_script(arguments: Sequence[str]) -> None:
    """Run a file as Python does, with the aliases of the project or of `PROCTOR_ALIASES`, or else all of them.

    The project is that of the working folder, or else that of the file.
    """
    if not arguments:
        sys.exit("usage: python -m proctor.compat.aliases FILE [ARGUMENTS]")
    folder = Path(arguments[0]).resolve().parent
    try:
        notes = install_aliases(aliases_of(Path.cwd()) or aliases_of(folder) or import_names())
    except UsageError as error:
        sys.exit(f"error: {error}")
    for note in notes:
        print(f"note: {note}", file=sys.stderr)  # noqa: T201  the script has no other place for it
    sys.argv[:] = arguments
    sys.path.insert(0, str(folder))  # and the working folder, as `python -m` has it
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    run_script(sys.argv[1:])
