"""`proctor init`: write a sample suite, a small agent to run it against, and a CI workflow."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from proctor.agents.frameworks import shipped_adapters
from proctor.base.errors import StoreError, UsageError
from proctor.base.installation import pip_command
from proctor.cli.ci_files import CI_FILES, REQUIREMENTS, Job, ci_files, folder_in_repository, repository_root
from proctor.cli.help_pages import DocumentedCommand
from proctor.cli.output import say
from proctor.plugins import shipped_plugins

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

ENDING = ".tmpl"
"""The ending of template files, so that no tool takes them for modules of this package."""
SCHEMA = "suite.schema.json"
CI_NAMES = {"github": "GitHub", "gitlab": "GitLab"}


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
    files: dict[Path, str | bytes] = {folder / place: text for place, text in _files(name, template)}
    requirements = folder / REQUIREMENTS
    if (ci is not None or template.packages) and not requirements.exists():
        files[requirements] = _requirements(template)
    elif template.packages:
        say(f"note: {requirements} exists; add what the agent needs: {' '.join(template.packages)}", err=True)
    if ci is not None:
        root = repository_root()
        here = Path() if root == Path.cwd() else root
        files |= {here / place: content for place, content in ci_files(ci, _job(ci, template, folder)).items()}
    _write(files)
    own = [str(path.relative_to(folder)) for path in files if path.is_relative_to(folder)]
    say(f"wrote {', '.join(own)} to {folder}")
    for path in files:
        if not path.is_relative_to(folder):
            say(f"wrote {path}")
    if ci is not None:
        say(f"commit these files, and {CI_NAMES[ci]} runs the suite; it needs no secret until the agent calls a model")
        if any(path.suffix == ".whl" for path in files):
            say("the wheel is a copy of Proctor, which was not installed from a package index here")
    if missing := _missing(template):
        say(f"install what it needs: {pip_command(*missing)}")
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


def _requirements(template: Template) -> str:
    lines = ["# The packages of the agent. Proctor is installed separately.", *template.packages]
    return "\n".join(lines) + "\n"


def _job(ci: str, template: Template, folder: Path) -> Job:
    """What the workflow runs for a template in this folder."""
    own = folder_in_repository(folder, ci)
    return Job(own, _expand_paths(template.paths, Path() if template.install else own), template.install)


def _write(files: Mapping[Path, str | bytes]) -> None:
    existing = [path for path in files if path.exists()]
    if existing:
        is_ci = any(existing[0].as_posix().endswith(name) for name in CI_FILES.values())
        advice = "remove --ci and add the job by hand" if is_ci else "name another folder: proctor init my_suite"
        raise UsageError(f"{existing[0]} already exists; {advice}")
    for path, content in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as out:
                out.write(content.encode() if isinstance(content, str) else content)
            if path.suffix == ".py" and path.read_bytes().startswith(b"#!"):
                path.chmod(0o755)
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
