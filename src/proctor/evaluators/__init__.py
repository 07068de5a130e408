"""How good the answer was: the evaluators, what they see and what they return.

The names stand in `__init__.pyi`, and each is loaded when it is first used: a suite with two evaluators loads two.
"""

from __future__ import annotations

from proctor.base.lazy_imports import lazy_names, names_in_stub

_MODULE_OF = names_in_stub(__file__)

_NOT_EVALUATORS = frozenset(
    "Dataset DatasetStore Evaluable Evaluation EvaluationPending Evaluator Exchange NothingToCompare"
    " evaluate AutoevalsAdapter as_evaluable by_name last_llm_call root Judged NoVerdict answer_text"
    " expected_text passages question_text AgentEvaluationPending create_agent_evaluator"
    " create_llm_evaluator BinaryJudgement NonBinaryJudgement TaskNode Verdict Step".split()
)

EVALUATORS = {name: module for name, module in _MODULE_OF.items() if name not in _NOT_EVALUATORS}
"""The module of each evaluator that a file may name."""

__all__ = list(_MODULE_OF)
__getattr__, __dir__ = lazy_names(globals(), _MODULE_OF)
