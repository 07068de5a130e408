"""ADK's names and the module that defines each; `__init__.py` reads it too."""

# ruff: noqa: I001  one import for each module reads better than one for each name

from proctor.compat.adk.test_config import DEFAULT_CRITERIA as DEFAULT_CRITERIA
from proctor.compat.adk.agent_evaluator import (
    NUM_RUNS as NUM_RUNS,
    AgentEvaluationFailed as AgentEvaluationFailed,
    AgentEvaluator as AgentEvaluator,
)
