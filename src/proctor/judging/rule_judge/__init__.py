"""The rule-based judge: proves or refutes by rules, without a model, a download or an account, and else abstains.

In: a `Question` of a known kind. Out: a reply of the same shape as a model's, with what it cannot tell marked.
`judge.py` maps kinds of questions to rules. `claims.py` splits texts into claims; `reading.py` (with `values.py`,
`lexicon.py` and the tables of `words.toml`) reads them into typed tokens; `clauses.py` says in which ways a sentence
states something, and `records.py` which sentences a table or JSON stands for; `proof.py` compares claims with all of
these. `agreement.py` compares an answer with a reference, `relevance.py` with a question.
"""
