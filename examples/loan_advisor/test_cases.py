"""The single-turn cases in the shortest form: an id, an input, and words of which the answer must mention any."""

from __future__ import annotations

TEST_CASES = [
    {
        "id": "payment-basic",
        "input": "Calculate the monthly payment for a $50,000 loan at 5% interest over 36 months.",
        "expected_output_contains": ["$1,498.54"],
    },
    {
        "id": "payment-in-years",
        "input": "What would I pay each month on a 250k mortgage at 6.5 percent over 30 years?",
        "expected_output_contains": ["$1,580.17"],
    },
    {
        "id": "eligibility-yes",
        "input": "My credit score is 720 and I earn $95,000 a year. Am I eligible for a $40,000 loan?",
        "expected_output_contains": ["you are eligible"],
    },
    {
        "id": "eligibility-no",
        "input": "With a credit score of 580 and an income of $30,000 a year, do I qualify for a $25,000 loan?",
        "expected_output_contains": ["not eligible"],
    },
    {
        "id": "impossible-score",
        "input": "My credit score is 20 and I earn $95,000 a year. Am I eligible for a $40,000 loan?",
        "expected_output_contains": ["between 300 and 850"],
    },
    {
        "id": "affordability",
        "input": "I earn $6,000 a month and already pay $900 on other debts. Can I afford a payment of $1,200 a month?",
        "expected_output_contains": ["you can afford", "$1,260"],
    },
    {
        "id": "comparison",
        "input": "Compare a $20,000 loan at 6% over 36 months with one at 5% over 60 months.",
        "expected_output_contains": ["$741.69"],
    },
    {
        "id": "schedule",
        "input": "Show me the amortization schedule for $1,200 at 6% over 3 months.",
        "expected_output_contains": ["$801.99", "$401.99"],
    },
    {
        "id": "off-topic",
        "input": "What is the weather like on the moon?",
        "expected_output_contains": ["help with loans"],
    },
]
