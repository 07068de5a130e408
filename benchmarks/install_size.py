"""The size of an install: distributions, megabytes and files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from environments import Interpreter
from limits import DISTRIBUTIONS, INSTALL_MB
from table import Row, at_most

TOOLS = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "distutils-precedence")
"""What `python -m venv` installs by itself."""


@dataclass(frozen=True, slots=True)
class InstallSize:
    """Packages, size and number of files that a package manager wrote, with compiled files if it compiles."""

    packages: int
    mebibytes: float
    files: int

    def __str__(self) -> str:
        return f"{self.packages} packages, {self.mebibytes:,.0f} MB, {self.files:,} files"


def measure_install(proctor: Interpreter) -> list[Row]:
    installed = installed_by_pip(proctor)
    return [
        at_most("base install: distributions, Proctor included", installed.packages, DISTRIBUTIONS, ""),
        at_most("base install: size with compiled files", installed.mebibytes, INSTALL_MB, " MB"),
        Row("- base install: files", f"{installed.files:,}"),
        *(Row(f"- base install: {name}", size) for name, size in _largest(_site_packages(proctor))),
    ]


def installed_by_pip(interpreter: Interpreter) -> InstallSize:
    """The install of an environment, without pip and setuptools."""
    packages = _site_packages(interpreter)
    distributions = [path for path in packages.glob("*.dist-info") if not path.name.startswith(TOOLS)]
    top = [path for path in packages.iterdir() if not path.name.startswith(TOOLS)]
    return _count(len(distributions), (file for path in top for file in _files(path)))


def installed_by_npm(program: Path) -> InstallSize:
    """The install of a program in `node_modules/.bin`."""
    modules = program.parent.parent
    packages = {path.parent for path in modules.rglob("node_modules/*/package.json")}
    packages |= {path.parent for path in modules.rglob("node_modules/@*/*/package.json")}
    packages |= {path.parent for pattern in ("*/package.json", "@*/*/package.json") for path in modules.glob(pattern)}
    return _count(len(packages), _files(modules))


def _count(packages: int, files: Iterable[Path]) -> InstallSize:
    sizes = [path.stat().st_size for path in files]
    return InstallSize(packages, sum(sizes) / 2**20, len(sizes))  # as `du -m` counts


def _largest(packages: Path) -> list[tuple[str, str]]:
    """The packages of a megabyte or more, the largest first."""
    sizes = {
        path.name: sum(file.stat().st_size for file in _files(path)) / 2**20
        for path in packages.iterdir()
        if not path.name.startswith(TOOLS)
    }
    return [(name, f"{size:.1f} MB") for name, size in sorted(sizes.items(), key=lambda it: -it[1]) if size >= 1]


def _files(path: Path) -> Iterable[Path]:
    installed = path.rglob("*") if path.is_dir() else [path]
    return (file for file in installed if file.is_file() and not file.is_symlink())


def _site_packages(interpreter: Interpreter) -> Path:
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    process = subprocess.run([str(interpreter.python), "-c", code], capture_output=True, text=True, check=True)
    return Path(process.stdout.strip())
