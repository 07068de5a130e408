"""holodeck-ai: the statements of the documentation of its test runner, and how a run behaves beside them."""

from __future__ import annotations

from collections.abc import Iterator

from peers_equal.comparison import Comparison, Peer, compare_items
from peers_equal.environments import Environment

NO_METRICS = "a test without metrics"
NO_TRUTH = "no `ground_truth`"
DOCUMENTED = {
    "statements": {"9 the report has summary statistics": "`metrics_evaluated`, `average_scores`"},
    "behaviour": {},
    "models": {},
    "differences": {
        "rouge in a run": "`rouge`",
        "bleu without a threshold": "`bleu`, `rouge`, `meteor` without a threshold",
        "an empty answer": "an empty answer",
        "a test that nothing scores": NO_METRICS,
        "a wrong answer without metrics": NO_METRICS,
        "no ground_truth in a test": NO_TRUTH,
        "no ground_truth in a turn": NO_TRUTH,
        "numeric with a text as the ground truth": "`numeric` with a `ground_truth` that is not a number",
        "a mark of 2 out of 5 against a threshold of 0.9": "a mark from 1 to 5 against a threshold below 1",
        "enabled: false": "`enabled: false`",
        "one metric with other flags in a test": "a metric twice with different flags",
        "one call for two expected tools": "one tool call, several expected tools",
        "a metric that crashes": "a metric that crashes",
        "a judged metric without a judge": "a judged metric without a judge",
        "an evaluator whose required argument is missing": "an injected evaluator without a required argument",
        "evaluators without one of the metrics": "a metric that `evaluators` does not name",
        "llm_timeout of a single test": "`llm_timeout`",
        "a relative file": "relative `files`",
        "where the text of files is": "the text of `files`",
        "the tools of Claude Code that an agent has without asking for any": "Claude Code's own tools",
        "defer_loading of a tool": "`defer_loading`",
        "an azure_openai model without an endpoint": "`LLMProvider`",
        "a provider that HoloDeck does not have": "`LLMProvider`",
    },
}


def compare(environment: Environment) -> Iterator[Comparison]:
    titles = {
        "statements": "statements of its documentation",
        "behaviour": "further behaviour of a run",
        "models": "models, valid and invalid",
        "differences": "known differences",
    }
    for group, title in titles.items():
        original, ours = (
            environment.call("holodeck_facts.py", {"who": who, "facts": group}) for who in ("original", "proctor")
        )
        yield compare_items(title, original, ours, DOCUMENTED[group])


PEER = Peer("holodeck", ("holodeck-ai[openai-agents]==0.7.1", "exceptiongroup"), compare)
