"""Lets files that import deepeval, pixie or holodeck run unchanged: these names resolve to `proctor.compat`.

`[tool.proctor] aliases = ["deepeval"]`, `PROCTOR_ALIASES` or pytest's ini option `proctor_aliases` asks for it. A
package that is really installed is used instead, unless its name is given with a `!`: `deepeval!`.
`python -m proctor.compat.aliases FILE` runs a script with them.
"""

from __future__ import annotations

import importlib
import os
import re
import runpy
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from proctor.base.documents import nearest
from proctor.base.errors import UsageError


@dataclass(frozen=True, slots=True)
class Package:
    """What stands behind a package: the module that has all its names, the paths people import from, its page."""

    home: str
    modules: str
    """The paths below the package that can be imported, as words."""
    page: str


PACKAGES = {
    "deepeval": Package(
        "proctor.compat.deepeval",
        "metrics metrics.base_metric metrics.dag.dag metrics.dag.graph metrics.dag.nodes "
        "metrics.conversational_dag.nodes metrics.g_eval.utils test_case test_case.llm_test_case "
        "test_case.conversational_test_case dataset dataset.dataset dataset.golden models models.base_model "
        "evaluate evaluate.configs evaluate.evaluate evaluate.types errors tracing",
        "docs/deepeval.md",
    ),
    "pixie": Package(
        "proctor.compat.pixie",
        "evals evals.criteria evals.dataset_runner evals.eval_utils evals.evaluation evals.llm_evaluator "
        "evals.scorecard evals.scorers evals.trace_capture evals.trace_helpers eval eval.agent_evaluator "
        "eval.evaluable eval.evaluation eval.llm_evaluator eval.scorers dataset dataset.models dataset.store "
        "harness harness.runnable harness.trace_capture instrumentation instrumentation.handler "
        "instrumentation.handlers instrumentation.llm_tracing instrumentation.models "
        "instrumentation.observation instrumentation.spans instrumentation.wrap storage storage.evaluable "
        "storage.tree",
        "docs/pixie.md",
    ),
    "holodeck": Package(
        "proctor.compat.holodeck",
        "config config.loader config.defaults config.manager models models.agent models.config "
        "models.evaluation models.llm models.test_case models.test_result models.token_usage models.tool "
        "models.tool_event models.eval_run models.tool_execution lib lib.errors lib.exceptions "
        "lib.file_processor lib.test_runner lib.test_runner.executor lib.test_runner.reporter "
        "lib.test_runner.progress lib.test_runner.eval_kwargs_builder lib.test_runner.code_grader "
        "lib.test_runner.tool_arg_matcher lib.test_runner.tool_invocation_builder lib.evaluators "
        "lib.evaluators.base lib.evaluators.param_spec lib.evaluators.azure_ai lib.evaluators.deterministic "
        "lib.evaluators.nlp_metrics lib.evaluators.deepeval lib.evaluators.deepeval.answer_relevancy "
        "lib.evaluators.deepeval.base lib.evaluators.deepeval.config "
        "lib.evaluators.deepeval.contextual_precision lib.evaluators.deepeval.contextual_recall "
        "lib.evaluators.deepeval.contextual_relevancy lib.evaluators.deepeval.errors "
        "lib.evaluators.deepeval.faithfulness lib.evaluators.deepeval.geval lib.backends lib.backends.base "
        "lib.backends.selector",
        "docs/holodeck.md",
    ),
}
FORCED = "!"


def install_aliases(given: Iterable[str]) -> list[str]:
    """Make these packages importable; returns what the user should know: packages that are installed and win.

    Raises `UsageError` for an unknown package, and for one that is to be replaced and is in use already.
    """
    notes: list[str] = []
    for written in check_aliases(given):
        name, forced = written.removesuffix(FORCED), written.endswith(FORCED)
        if isinstance(sys.modules.get(name), Alias):
            continue
        if not forced and (name in sys.modules or _is_installed(name)):
            notes.append(f"{name} is installed and used as it is; write {name}{FORCED} for Proctor's names instead")
        elif name in sys.modules:
            raise UsageError(f"aliases: {name} is imported already, so {name}{FORCED} comes too late{_plugin(name)}")
        else:
            _forget(name)
            sys.meta_path.insert(0, _Finder(name, PACKAGES[name], forced))
    return notes


def check_aliases(given: Iterable[str]) -> tuple[str, ...]:
    """The same names; raises `UsageError` for one that is no package Proctor can stand in for."""
    names = tuple(given)
    for name in (written.removesuffix(FORCED) for written in names):
        if name not in PACKAGES:
            raise UsageError(f"aliases: no alias {name!r}{nearest(name, PACKAGES)}; there are {', '.join(PACKAGES)}")
    return names


def _forget(name: str) -> None:
    sys.meta_path[:] = [other for other in sys.meta_path if not (isinstance(other, _Finder) and other.package == name)]


def _is_installed(name: str) -> bool:
    """Whether the path has it; a folder without code, which Python would take for a namespace, is no package."""
    spec = PathFinder.find_spec(name)
    return spec is not None and spec.origin is not None


def _plugin(name: str) -> str:
    return f"; keep its pytest plugin from loading with -p no:{name}" if name == "deepeval" else ""


class _Finder(MetaPathFinder, Loader):
    """Finds the modules of one package; those that it does not have are refused with the nearest."""

    def __init__(self, name: str, package: Package, forced: bool) -> None:
        self.package = name
        self._package = package
        self._forced = forced
        self._paths: frozenset[str] | None = None

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        root, _, below = fullname.partition(".")
        if root != self.package or (not self._forced and self._is_real(root, below)):
            return None
        if below and below not in self._known():
            told = f"Proctor's alias of {root} has no module {fullname!r}"
            hint = nearest(fullname, [f"{root}.{known}" for known in self._known()])
            raise ModuleNotFoundError(f"{told}{hint} (see {self._package.page})", name=fullname)
        return ModuleSpec(fullname, self, origin=f"alias of {self._package.home}", is_package=True)

    def _is_real(self, root: str, below: str) -> bool:
        """The path may have grown since the alias was installed, as pytest's option pythonpath makes it grow."""
        return not isinstance(sys.modules[root], Alias) if below else _is_installed(root)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Alias(spec.name, self._homes(spec.name), self._package.page)

    def exec_module(self, module: ModuleType) -> None:
        return

    def _homes(self, fullname: str) -> list[str]:
        """The compat module of the same name, if there is one, then the one that has all names."""
        top = fullname.split(".")[1:2]
        own = [f"{self._package.home}.{top[0]}"] if top and (self.package, top[0]) in OWN_MODULES else []
        return [*own, self._package.home]

    def _known(self) -> frozenset[str]:
        if self._paths is None:
            listed = self._package.modules.split()
            if self.package == "deepeval":
                listed += _modules_of_metrics()
            self._paths = frozenset(".".join(path.split(".")[:n]) for path in listed for n in range(1, 5))
        return self._paths


OWN_MODULES = {("deepeval", name) for name in ("metrics", "test_case", "dataset", "models", "tracing")}
"""Modules of a package that `proctor.compat` has under the same name, with their own `__all__`."""


def _modules_of_metrics() -> list[str]:
    """Each metric has a folder and a file of its name: `metrics.g_eval.g_eval` for `GEval`."""
    # Every command looks at the aliases of the project; the metrics are loaded only if deepeval is among them.
    from proctor.compat.deepeval import metrics

    folders = (re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name) for name in metrics.__all__)
    names = [folder.removesuffix("_Metric").removesuffix("Metric").lower() for folder in folders]
    return [path for name in names for path in (f"metrics.{name}", f"metrics.{name}.{name}")]


class Alias(ModuleType):
    """A module under another package's name, which takes each name from the compat modules when it is first used."""

    def __init__(self, name: str, homes: Sequence[str], page: str) -> None:
        super().__init__(name, f"Proctor's names for {name}: see {page}.")
        self.__dict__.update(_homes=homes, _page=page)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [*importlib.import_module(self._homes[0]).__all__]
        if not name.startswith("_"):
            for home in map(importlib.import_module, self._homes):
                if name in home.__all__:
                    return getattr(home, name)
        hint = "" if name.startswith("_") else nearest(name, importlib.import_module(self._homes[-1]).__all__)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}{hint} (see {self._page})")

    def __setattr__(self, name: str, value: Any) -> None:
        """`deepeval.evaluate` is a function and a module: the function stays when the import system adds the module."""
        if isinstance(value, Alias) and name in importlib.import_module(self._homes[0]).__all__:
            return
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted(importlib.import_module(self._homes[0]).__all__)


VARIABLE = "PROCTOR_ALIASES"


def names_in(text: str) -> list[str]:
    """The packages that a variable or an option names, with commas or spaces between them."""
    return text.replace(",", " ").split()


def run_script(arguments: Sequence[str]) -> None:
    """Run a file as Python does, with the packages that `PROCTOR_ALIASES` names, or else all of them."""
    if not arguments:
        sys.exit("usage: python -m proctor.compat.aliases FILE [ARGUMENTS]")
    for note in install_aliases(names_in(os.environ.get(VARIABLE, "")) or PACKAGES):
        print(f"note: {note}", file=sys.stderr)  # noqa: T201  the script has no other place for it
    sys.argv[:] = arguments
    sys.path.insert(0, str(Path(arguments[0]).resolve().parent))  # and the working folder, as `python -m` has it
    runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    from proctor.compat import aliases

    aliases.run_script(sys.argv[1:])  # not the copy that runs as __main__, whose `Alias` is another class
