"""DeepEval: its test cases, datasets, metrics without a model, `evaluate`, traces, and all names that it exports."""

from __future__ import annotations

from collections.abc import Iterator

from peers_equal.comparison import Comparison, Peer, compare_items
from peers_equal.environments import Environment

BELOW = """metrics test_case dataset models tracing evaluate synthesizer simulator prompt optimizer annotation scorer
    benchmarks metrics.dag metrics.g_eval metrics.conversational_dag""".split()
MODULES = ["deepeval", *(f"deepeval.{name}" for name in BELOW)]
CRASH = "a metric that crashes"
TOOLS = "`tools_called`, `context`"
DOCUMENTED = {
    "a test case with a tool as a dictionary": TOOLS,
    "a test case with a tool by its name": TOOLS,
    "a test case with a passage that is a number": TOOLS,
    "is_successful with the score None, the threshold 0.5 and the error None": "`is_successful()` without a score",
    "evaluate with a metric that raises, errors ignored, async True": CRASH,
    "evaluate with a metric that raises, async True": CRASH,
    "evaluate with a metric that raises, async False": CRASH,
    "evaluate without what a metric needs": "a test case without a field that a metric needs",
}
IMPORT = "from deepeval"


def compare(environment: Environment) -> Iterator[Comparison]:
    original = environment.call("deepeval_facts.py", {"who": "original", "modules": MODULES, "names": None})
    inputs = {"who": "proctor", "modules": MODULES, "names": original["names"]}
    ours = environment.call("deepeval_facts.py", inputs)
    for what, imports in (("facts about DeepEval", False), ("names that DeepEval exports", True)):
        sides = [
            {name: result for name, result in side["facts"].items() if name.startswith(IMPORT) == imports}
            for side in (original, ours)
        ]
        documented = {name: row for name, row in DOCUMENTED.items() if name.startswith(IMPORT) == imports}
        yield compare_items(what, *sides, documented)


PEER = Peer("deepeval", ("deepeval",), compare)
