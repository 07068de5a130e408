"""Writes what is derived from the declarations of evaluators: `python -m proctor.evaluators.index [--check]`.

Names must be found without importing all evaluators, which takes longer than most runs. So this command imports them
once and writes, for the package of shipped evaluators and for each plugin that brings some, a module `_index` that says
where each name is, and the schema of suites, in which editors find the names. `--check` writes nothing and fails if
something is not up to date; `make lint` runs it.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

from proctor import plugins
from proctor.cases.formats.native.schema import schema_text
from proctor.evaluators.declaration import FAMILIES, Declaration

PACKAGE = "proctor.evaluators"
SCHEMA = "proctor/schemas/suite.schema.json"

HEAD = '''"""The evaluators of this package and where each is. Written by `python -m proctor.evaluators.index`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
'''


def collect_declarations(package: str) -> list[Declaration]:
    """Every evaluator that a module of the package declares, in the order of families, files and lines."""
    by_name: dict[str, Declaration] = {}
    for module_name in _modules(package):
        module = importlib.import_module(module_name)
        for value in vars(module).values():
            own = vars(value).get("declaration") if isinstance(value, type) else None
            if not isinstance(own, Declaration) or value.__module__ != module_name:
                continue
            for name in (own.name, *own.also):
                if name in by_name:
                    raise SystemExit(
                        f"{module_name}: another evaluator is already called {name}: {by_name[name].target}"
                    )
                by_name[name] = own
            _check_example(own)
    order = list(FAMILIES)
    distinct = {id(item): item for item in by_name.values()}.values()
    return sorted(distinct, key=lambda item: order.index(item.family) if item.family in order else len(order))


def _modules(package: str) -> Iterator[str]:
    root = importlib.import_module(package)
    for module in pkgutil.walk_packages(root.__path__, f"{package}."):
        if module.name.rpartition(".")[2] not in ("__main__", "_index"):
            yield module.name


def _check_example(item: Declaration) -> None:
    unknown = set(item.example) - {parameter.name for parameter in item.parameters}
    if unknown:
        raise SystemExit(f"{item.name}: its example has {', '.join(sorted(unknown))}, which are not parameters")


def render_index(items: list[Declaration]) -> str:
    """The text of `_index.py`."""
    names = {name: item.target for item in items for name in (item.name, *item.also)}
    exported = {name: target for name, target in names.items() if name[:1].isupper()}
    imports = [
        f"    from {item.target.__module__} import {item.name} as {item.name}\n"
        for item in items
        if item.name in exported
    ]
    aliases = [f"    {name} = {target.__name__}\n" for name, target in exported.items() if name != target.__name__]
    imports += ["\n", *aliases] if aliases else []
    places = [f'    "{name}": "{target.__module__}:{target.__name__}",\n' for name, target in names.items()]
    return (
        f"{HEAD}{''.join(imports)}\n"
        f"EVALUATORS: dict[str, str] = {{\n{''.join(places)}}}\n"
        '"""The module and class of each name that a suite may use."""\n'
    )


def generated_files() -> dict[Path, str]:
    """Every file that is derived from declarations, and what must be in it."""
    source = Path(__file__).parents[2]
    own = collect_declarations(PACKAGE)
    files = {Path(__file__).with_name("_index.py"): render_index(own)}
    for name in plugins.SHIPPED:
        package, _, module = name.rpartition(".")
        # A plugin that is one module, with no folder of its own, names its evaluators itself.
        if module == "plugin" and (items := collect_declarations(package)):
            files[source.joinpath(*package.split("."), "_index.py")] = render_index(items)
    listed = [item for item in own if item.family in FAMILIES and not item.variant_of]
    files[source / SCHEMA] = schema_text({item.name: item.summary for item in listed})
    return files


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` say which of them are not up to date."""
    stale = [
        (path, text)
        for path, text in generated_files().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    for path, text in stale:
        if "--check" in arguments:
            sys.stderr.write(f"{path} is not up to date; run python -m proctor.evaluators.index\n")
        else:
            path.write_text(text, encoding="utf-8")
    return int("--check" in arguments and bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
