"""`python -m proctor.compat.aliases FILE` runs a script in which `import deepeval` and the like give Proctor's names.

`install_aliases(["deepeval"])` switches them on in code. How it works is in `proctor.import_aliases`.
"""

from __future__ import annotations

import sys

from proctor.import_aliases import install_aliases, run_script

__all__ = ["install_aliases", "run_script"]

if __name__ == "__main__":
    run_script(sys.argv[1:])
