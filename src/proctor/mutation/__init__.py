"""Mutation testing: would a suite notice a wrong answer?

In: a stored run. Its passing answers and tool calls are changed in many small ways, each kind at every place
(`mutants.py`, with `text_changes.py`, `sentence_changes.py`, `data_places.py` and `call_mutants.py`), and the suite's
own evaluators score each *mutant* (`scoring.py`): one that fails is *killed*, one that still passes *survived*, and
shows what the suite does not check. No agent runs. Before that come two controls: the suite must pass its own
expected answers and fail an empty one (`mutate.py`). For survivors, expectations that would kill them are suggested,
each checked by running it (`proposals.py`). Out: a `MutationReport` (`findings.py`), printed on a terminal
(`terminal.py`) or written as JSON, Markdown or HTML (`report.py`).

`plugin.py` declares the command `proctor mutate` (`command.py`). Nothing else in Proctor imports this folder: delete
it and its line in `proctor.plugins.SHIPPED`, and the rest works without it.
"""
