"""The names of this package; `__init__.py` reads the imports too.

Evaluators are listed in the `_index` modules, which are written from their declarations. Those of other tools come
through the tools' plugins; they are named here for type checkers, and because they have always been names of this
package.
"""

# ruff: noqa: I001, F403  one import for each module reads better than one for each name

from proctor.evaluators._index import *
from proctor.compat.adk._index import *
from proctor.compat.deepeval._index import *
from proctor.compat.holodeck._index import *
from proctor.compat.pixie._index import *
from proctor.compat.pixie.datasets import (
    Dataset as Dataset,
    DatasetStore as DatasetStore,
)
from proctor.evaluators.declaration import (
    evaluator as evaluator,
)
from proctor.evaluators.calling import evaluate as evaluate
from proctor.evaluators.evaluation import (
    Evaluable as Evaluable,
    Evaluation as Evaluation,
    EvaluationPending as EvaluationPending,
    Evaluator as Evaluator,
    Exchange as Exchange,
    NothingToCompare as NothingToCompare,
)
from proctor.compat.pixie.autoevals import (
    AutoevalsAdapter as AutoevalsAdapter,
)
from proctor.evaluators.from_trace import (
    as_evaluable as as_evaluable,
    by_name as by_name,
    last_llm_call as last_llm_call,
    root as root,
)
from proctor.evaluators.judged_evaluator import (
    JudgedEvaluator as JudgedEvaluator,
    NoVerdict as NoVerdict,
)
from proctor.evaluators.material import (
    answer_text as answer_text,
    expected_text as expected_text,
    passages as passages,
    question_text as question_text,
)
from proctor.evaluators.prompt_evaluators import (
    AgentEvaluationPending as AgentEvaluationPending,
    create_agent_evaluator as create_agent_evaluator,
    create_llm_evaluator as create_llm_evaluator,
)
from proctor.compat.deepeval.dag import (
    BinaryJudgement as BinaryJudgement,
    NonBinaryJudgement as NonBinaryJudgement,
    TaskNode as TaskNode,
    Verdict as Verdict,
)
from proctor.evaluators.tools.steps import (
    Step as Step,
)

Judged = JudgedEvaluator  # the former name

def family_of(name: str) -> str: ...
def shipped_evaluators() -> dict[str, str]: ...
