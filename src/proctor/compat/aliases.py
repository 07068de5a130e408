"""Run a script in which `import deepeval`, `import pixie` or `import holodeck` gives Proctor's names.

On the command line: `python -m proctor.compat.aliases FILE`. In code: `install_aliases(["deepeval"])`. How it works is
described in `proctor.import_aliases`.
"""

from __future__ import annotations

import sys

from proctor.import_aliases import install_aliases, run_script

__all__ = ["install_aliases", "run_script"]

if __name__ == "__main__":
    run_script(sys.argv[1:])
