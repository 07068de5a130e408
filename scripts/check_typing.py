"""Checks the types of the Python interface with mypy and pyright, both strict: `python scripts/check_typing.py`.

`tests/python_api/typing/forms.py` uses every form and must be clean. Each line of `mistakes.py` that ends in
`# mistake` must be reported. pyright comes as `basedpyright`, which brings its own node.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests" / "python_api" / "typing"
FORMS, MISTAKES = FOLDER / "forms.py", FOLDER / "mistakes.py"


def mypy_lines() -> set[tuple[str, int]]:
    """The file and line of everything that mypy reports."""
    command = [sys.executable, "-m", "mypy", "--strict", str(FORMS), str(MISTAKES)]
    output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    return {(Path(file).name, int(line)) for file, line in re.findall(r"^(.+?):(\d+): error:", output, re.MULTILINE)}


def pyright_lines() -> set[tuple[str, int]]:
    """The file and line of everything that pyright reports."""
    settings = {
        "include": [str(FOLDER)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "extraPaths": [str(ROOT / "src")],
    }
    with TemporaryDirectory() as folder:
        config = Path(folder) / "pyrightconfig.json"
        config.write_text(json.dumps(settings), encoding="utf-8")
        program = Path(sys.executable).with_name("basedpyright")
        command = [str(program), "-p", str(config), "--pythonpath", sys.executable, "--outputjson"]
        output = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    found = json.loads(output)["generalDiagnostics"]
    return {(Path(item["file"]).name, item["range"]["start"]["line"] + 1) for item in found}


def main() -> int:
    """0 if both tools report exactly the mistakes."""
    lines = enumerate(MISTAKES.read_text(encoding="utf-8").splitlines(), start=1)
    planted = {(MISTAKES.name, number) for number, line in lines if line.endswith("# mistake")}
    code = 0
    for tool, reported in (("mypy", mypy_lines()), ("pyright", pyright_lines())):
        for file, line in sorted(reported - planted):
            print(f"{tool} reports {file}:{line}, which is right")
        for file, line in sorted(planted - reported):
            print(f"{tool} does not report {file}:{line}, which is a mistake")
        code = code or int(reported != planted)
    print(f"{len(planted)} mistakes, each found by mypy and pyright" if not code else "the types need work")
    return code


if __name__ == "__main__":
    sys.exit(main())
