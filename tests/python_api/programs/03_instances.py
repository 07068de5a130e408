"""Instances, names, settings."""

from proctor import ROUGE, Case, Contains, Suite, evaluator


@evaluator(threshold=0.8, report_only=True)
def close(output, expected):
    return 1 - abs(len(output) - len(expected)) / 100


assert Suite(
    "shop",
    agent=lambda q: "It is shipped.",
    evaluators=[ROUGE(variant="rouge1", threshold=0.6), close],
    cases=[
        Case("Where is A-17?", "It was shipped.", evaluators=[..., Contains(any=["shipped"])]),
        Case(
            "Where is A-18?",
            "It is shipped today.",
            evaluators=["LevenshteinMatch", {"ExactMatch": {"report_only": True}}],
        ),
    ],
).run()
