"""Proctor tests AI agents: it runs suites of cases, scores the answers and tool calls, and gives a verdict.

    from proctor import Case, Suite

    suite = Suite("shop", agent=agent, cases=[
        Case("Where is my order A-17?", expected={"contains": ["shipped"]}),
        Case("My order A-18 never came.", expected={"contains": {"all": ["sorry", "refund"]}}),
    ])
    run = suite.run()
    run.print()
    assert run

- `Case`, `Suite`: questions, and what is expected of the answers. `Turn`, `Expected`, `ExpectedCall` are their parts.
- `evaluator`: how the score of a function is used. Any function, name or instance is an evaluator.
- `run`, `load`: run suites, or read them from files. `ask`, `expect`: one question, and a check of the reply.
- `Run`, `compare`: the results, and what changed between two runs.
- `tool`: records the calls of a function.

PYTEST_DONT_REWRITE
"""

from __future__ import annotations

from collections.abc import Mapping

from proctor.base.lazy_imports import lazy_names, names_in_stub

# The public names are in `__init__.pyi`, and evaluators declare themselves. Each name is imported when it is first
# used, because pytest imports Proctor in every run, for the plugin. The last line of the docstring is for pytest alone.
__doc__ = (__doc__ or "").partition("PYTEST")[0]


def _evaluators_and_tools() -> Mapping[str, str]:
    """Where evaluators and the names of tools are. Called for a name that is not in the stub."""
    from proctor.evaluators import shipped_evaluators
    from proctor.plugins import exports_of_shipped_plugins

    evaluators = {name: place for name, place in shipped_evaluators().items() if name[:1].isupper()}
    return exports_of_shipped_plugins() | evaluators


_PLACE_OF = names_in_stub(__file__, without="proctor.compat")
__getattr__, __dir__ = lazy_names(
    globals(), _PLACE_OF, more=_evaluators_and_tools, renamed={"Judged": "JudgedEvaluator", "TrialResult": "Trial"}
)
