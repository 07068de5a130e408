"""What the base install brings: distributions and megabytes, Proctor included, pip and setuptools not."""

from __future__ import annotations

import subprocess
from pathlib import Path

from environments import Interpreter
from table import Row

TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
"""What `python -m venv` puts there by itself."""


def measure_install(proctor: Interpreter) -> list[Row]:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(
        subprocess.run([str(proctor.python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    )
    distributions = sorted(path.name for path in packages.glob("*.dist-info") if not path.name.startswith(TOOLS))
    files = (path for path in packages.rglob("*") if path.is_file() and not path.is_symlink())
    size = sum(path.stat().st_size for path in files if not path.relative_to(packages).parts[0].startswith(TOOLS))
    mebibytes = size / 2**20  # as `du -m` counts
    return [
        Row(
            "base install: distributions, Proctor included",
            f"{len(distributions)}",
            "at most 25",
            len(distributions) <= 25,
        ),
        Row("base install: size with compiled files", f"{mebibytes:.1f} MB", "at most 50 MB", mebibytes <= 50),
    ]
