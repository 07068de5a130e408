"""The rule-based judge: proves or refutes by rules, without a model, a download or an account, and else abstains.

In: a `Question` of a known kind. Out: a reply of the same shape as a model's, with what it cannot tell marked.
`judge.py` maps kinds of questions to rules. `claims.py` splits texts into claims, `reading.py` (with `values.py` and
the tables of `lexicon.py`) reads them into typed tokens, `alignment.py` compares two token lists, `rewriting.py` says
what else a sentence states, `proof.py` and `records.py` decide about a claim, `agreement.py` about an answer and a
reference, `relevance.py` about a question.
"""
