"""The single-turn cases in the shortest form: an id, an input, and what the answer must say."""

from __future__ import annotations

TEST_CASES = [
    {
        "id": "payment-basic",
        "input": "Calculate the monthly payment for a $50,000 loan at 5% interest over 36 months.",
        "expected_output_contains": [
            "A $50,000 loan at 5% over 36 months has a monthly payment of $1,498.54.",
            "You would pay $53,947.61 in total, of which $3,947.61 is interest.",
        ],
        "match": "all",
    },
    {
        "id": "payment-in-years",
        "input": "What would I pay each month on a 250k mortgage at 6.5 percent over 30 years?",
        "expected_output_contains": [
            "A $250,000 loan at 6.5% over 360 months has a monthly payment of $1,580.17.",
            "You would pay $568,861.22 in total, of which $318,861.22 is interest.",
        ],
        "match": "all",
    },
    {
        "id": "eligibility-yes",
        "input": "My credit score is 720 and I earn $95,000 a year. Am I eligible for a $40,000 loan?",
        "expected_output_contains": [
            "Good news: you are eligible for this loan.",
            "You could borrow up to $57,000.",
        ],
        "match": "all",
    },
    {
        "id": "eligibility-no",
        "input": "With a credit score of 580 and an income of $30,000 a year, do I qualify for a $25,000 loan?",
        "expected_output_contains": [
            "I am sorry, you are not eligible for this loan: the credit score is 580 and must be at least "
            "640 and the largest loan for that income is $18,000.",
        ],
    },
    {
        "id": "impossible-score",
        "input": "My credit score is 20 and I earn $95,000 a year. Am I eligible for a $40,000 loan?",
        "expected_output_contains": [
            "I cannot work that out: a credit score lies between 300 and 850.",
        ],
    },
    {
        "id": "affordability",
        "input": "I earn $6,000 a month and already pay $900 on other debts. Can I afford a payment of $1,200 a month?",
        "expected_output_contains": [
            "Yes, you can afford this payment: all debts together would take 35% of your income.",
            "The most you should pay is $1,260 a month.",
        ],
        "match": "all",
    },
    {
        "id": "comparison",
        "input": "Compare a $20,000 loan at 6% over 36 months with one at 5% over 60 months.",
        "expected_output_contains": [
            "Side by side: offer A costs $608.44 a month and $21,903.79 in total; offer B costs $377.42 a "
            "month and $22,645.48 in total.",
            "Offer A is the cheapest and saves $741.69, though offer B is lighter by month.",
        ],
        "match": "all",
    },
    {
        "id": "schedule",
        "input": "Show me the amortization schedule for $1,200 at 6% over 3 months.",
        "expected_output_contains": [
            "Month 1: you pay $404.01, $398.01 of it principal and $6 interest, and still owe $801.99.",
            "Month 2: you pay $404.01, $400 of it principal and $4.01 interest, and still owe $401.99.",
            "Month 3: you pay $404, $401.99 of it principal and $2.01 interest, and still owe $0.",
            "The interest comes to $12.02.",
        ],
        "match": "all",
    },
    {
        "id": "off-topic",
        "input": "What is the weather like on the moon?",
        "expected_output_contains": [
            "I can help with loans: ask me for a monthly payment, an amortization schedule, a comparison of "
            "offers, whether you are eligible, or whether you can afford a payment.",
        ],
    },
]
