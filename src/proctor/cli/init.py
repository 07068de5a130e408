"""`proctor init`: write a sample suite, a small agent to run it against, and a CI workflow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.agents.frameworks import shipped_adapters
from proctor.base.errors import StoreError, UsageError
from proctor.cli.help_pages import DocumentedCommand
from proctor.cli.output import say
from proctor.plugins import shipped_plugins

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

ENDING = ".tmpl"
"""The ending of template files, so that no tool takes them for modules of this package."""
SCHEMA = "suite.schema.json"
CI_FILES = {"github": ".github/workflows/proctor.yml", "gitlab": ".gitlab-ci.yml"}


@dataclass(frozen=True, slots=True)
class Template:
    """A template: its files and how to run them."""

    about: str
    """One line for the help."""
    paths: tuple[str, ...] = ("@suite.yaml",)
    """The arguments of `proctor test`; @ marks paths in the new folder."""
    shares: tuple[str, ...] = ("suite.yaml",)
    """Files of the plain template that it also uses."""
    packages: tuple[str, ...] = ()
    folder: str = ""
    """The folder of a plugin's template, as `package:folder`."""
    has_schema: bool = True
    """Whether it includes the JSON schema of native suites."""
    install: str = ""
    """A command that installs what it needs, if that is not a Python package."""


def _plugin_templates() -> dict[str, Template]:
    """The templates of the shipped tools."""
    return {
        item.name: Template(
            item.summary,
            item.test_arguments,
            item.shares,
            folder=item.folder,
            has_schema=False,
            install=item.install,
        )
        for plugin in shipped_plugins()
        for item in plugin.templates
    }


TEMPLATES = {
    "plain": Template("a Python function and a native suite"),
    "pytest": Template(
        "the same agent and suite, run by pytest", ("@evaluation/first.proctor.yaml",), ("agent.py",), ("pytest",)
    ),
    **_plugin_templates(),
    **{
        adapter.name: Template(f"an agent built with {adapter.title}", packages=adapter.packages)
        for adapter in shipped_adapters()
        if (resources.files("proctor") / "templates" / adapter.name).is_dir()
    },
}


@click.command(
    "init",
    cls=DocumentedCommand,
    examples=("proctor init my_suite", "proctor init my_suite --template langchain --ci github"),
    epilog="\b\nTemplates:\n" + "\n".join(f"  {name:<17} {item.about}" for name, item in TEMPLATES.items()),
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option(
    "-t",
    "--template",
    "name",
    type=click.Choice(sorted(TEMPLATES)),
    metavar="NAME",
    default="plain",
    help="Template to use (default: plain); the list below has all of them.",
)
@click.option("--ci", type=click.Choice(sorted(CI_FILES)), help="Also write a CI workflow that runs the suite.")
def command(folder: Path, name: str, ci: str | None) -> int:
    """Write a sample agent, a suite, and the schema with which editors complete it, to FOLDER (default: here).

    Existing files are never overwritten. Framework templates use a fake model, so the suite runs without an API key.
    """
    template = TEMPLATES[name]
    files = {folder / place: text for place, text in _files(name, template)}
    if ci is not None:
        files |= _ci_file(ci, template, folder)
    _write(files)
    own = [str(path.relative_to(folder)) for path in files if path.is_relative_to(folder)]
    say(f"wrote {', '.join(own)} to {folder}")
    for path in files:
        if not path.is_relative_to(folder):
            say(f"wrote {path}")
    if ci == "github":
        say("replace OWNER in that file with the GitHub account that hosts Proctor")
    if missing := _missing(template):
        say(f"install what it needs: pip install {' '.join(missing)}")
    if template.install:
        say(f"install what it needs: {_in_folder(template.install, folder)}")
    if template.install:  # its project file has to be found from the working folder
        say(f"now run: {_in_folder(shlex.join(['proctor', 'test', *_expand_paths(template.paths, Path())]), folder)}")
        return 0
    words = ["pytest", str(folder)] if name == "pytest" else ["proctor", "test", *_expand_paths(template.paths, folder)]
    say(f"now run: {shlex.join(words)}")
    return 0


def _in_folder(command: str, folder: Path) -> str:
    return command if folder == Path() else f"(cd {shlex.quote(str(folder))} && {command})"


def _expand_paths(words: Sequence[str], folder: Path) -> list[str]:
    return [(folder / word[1:]).as_posix() if word.startswith("@") else word for word in words]


def _files(name: str, template: Template) -> Iterator[tuple[str, str]]:
    """The files of a template, its own and those of the plain one: path and text."""
    root = resources.files("proctor") / "templates"
    package, _, folder = template.folder.partition(":")
    files = dict(_below(resources.files(package) / folder if package else root / name, ""))
    for shared in template.shares:
        if shared not in files:
            files[shared] = (root / "plain" / f"{shared}{ENDING}").read_text(encoding="utf-8")
    yield from sorted(files.items())
    if template.has_schema:
        yield SCHEMA, resources.files("proctor").joinpath(f"schemas/{SCHEMA}").read_text(encoding="utf-8")


def _below(folder: Traversable, place: str) -> Iterator[tuple[str, str]]:
    for item in folder.iterdir():
        if item.is_dir():
            yield from _below(item, f"{place}{item.name}/")
        elif item.name.endswith(ENDING):
            yield f"{place}{item.name.removesuffix(ENDING)}", item.read_text(encoding="utf-8")


def _ci_file(ci: str, template: Template, folder: Path) -> dict[Path, str]:
    """The CI workflow, at the root of the repository."""
    here = Path.cwd()
    root = next((up for up in (here, *here.parents) if (up / ".git").exists()), here)
    try:
        own = folder.resolve().relative_to(root.resolve())
    except ValueError:
        raise UsageError(f"{folder} is outside of {root}, where the {ci} workflow belongs") from None
    text = (resources.files("proctor") / "templates" / "ci" / f"{ci}{ENDING}").read_text(encoding="utf-8")
    words = _expand_paths(template.paths, own)
    lines = "".join(f"\n            {word}" for word in words)
    filled = text.replace("{lines}", lines).replace("{words}", shlex.join(words))
    return {(root if root != here else Path()) / CI_FILES[ci]: filled}


def _write(files: dict[Path, str]) -> None:
    existing = [path for path in files if path.exists()]
    if existing:
        is_ci = any(existing[0].as_posix().endswith(name) for name in CI_FILES.values())
        advice = "remove --ci and add the job by hand" if is_ci else "name another folder: proctor init my_suite"
        raise UsageError(f"{existing[0]} already exists; {advice}")
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as out:
                out.write(text)
        except OSError as error:
            raise StoreError(f"cannot write {path}: {error.strerror or error}") from None


def _missing(template: Template) -> list[str]:
    """Packages that the template needs and that are not installed."""
    missing = []
    for package in template.packages:
        try:
            version(package)
        except PackageNotFoundError:
            missing.append(package)
    return missing
