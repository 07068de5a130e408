"""Every public name of Proctor and the module that defines it; `__init__.py` reads it too.

Evaluators are listed in the `_index` modules, which are written from their declarations.
"""

# ruff: noqa: I001, F403  one import for each module reads better than one for each name

from proctor.agents.agent import Agent as Agent, Session as Session
from proctor.agents.reply import Reply as Reply, ToolCall as ToolCall, Usage as Usage
from proctor.agents.runnable_agent import (
    Runnable as Runnable,
)
from proctor.api import (
    ask as ask,
    ask_async as ask_async,
    compare as compare,
    expect as expect,
    load as load,
    run as run,
    run_async as run_async,
)
from proctor.base.errors import (
    AgentFailed as AgentFailed,
    Inconclusive as Inconclusive,
    InvalidSuite as InvalidSuite,
    JudgeFailed as JudgeFailed,
    ProctorError as ProctorError,
    StoreError as StoreError,
    UsageError as UsageError,
)
from proctor.base.json_data import (
    UNSET as UNSET,
)
from proctor.cases.suite import (
    Case as Case,
    Criteria as Criteria,
    EvaluatorSpec as EvaluatorSpec,
    Expected as Expected,
    ExpectedCall as ExpectedCall,
    Keywords as Keywords,
    NamedData as NamedData,
    Settings as Settings,
    Suite as Suite,
    Turn as Turn,
)
from proctor.compat.adk.agent_evaluator import (
    AgentEvaluator as AgentEvaluator,
)
from proctor.compat.deepeval.dag import (
    BinaryJudgement as BinaryJudgement,
    NonBinaryJudgement as NonBinaryJudgement,
    TaskNode as TaskNode,
    Verdict as Verdict,
)
from proctor.compat.pixie.autoevals import (
    AutoevalsAdapter as AutoevalsAdapter,
)
from proctor.compat.pixie.dataset_assertions import (
    assert_dataset_pass as assert_dataset_pass,
    assert_dataset_pass_sync as assert_dataset_pass_sync,
)
from proctor.compat.pixie.datasets import (
    Dataset as Dataset,
    DatasetStore as DatasetStore,
)
from proctor.evaluators._index import *
from proctor.compat.adk._index import *
from proctor.compat.deepeval._index import *
from proctor.compat.holodeck._index import *
from proctor.compat.pixie._index import *
from proctor.evaluators import (
    AgentEvaluationPending as AgentEvaluationPending,
    Evaluable as Evaluable,
    Evaluation as Evaluation,
    EvaluationPending as EvaluationPending,
    Evaluator as Evaluator,
    Exchange as Exchange,
    JudgedEvaluator as JudgedEvaluator,
    NothingToCompare as NothingToCompare,
    Step as Step,
    as_evaluable as as_evaluable,
    by_name as by_name,
    create_agent_evaluator as create_agent_evaluator,
    create_llm_evaluator as create_llm_evaluator,
    evaluate as evaluate,
    last_llm_call as last_llm_call,
    root as root,
    evaluator as evaluator,
)
from proctor.judging.judge import (
    Judge as Judge,
    Question as Question,
)
from proctor.judging.panel import (
    Panel as Panel,
)
from proctor.compat.pixie.scorecard import (
    DatasetEntryResult as DatasetEntryResult,
    DatasetScorecard as DatasetScorecard,
    generate_dataset_scorecard_html as generate_dataset_scorecard_html,
    save_dataset_scorecard as save_dataset_scorecard,
    scorecards_of as scorecards_of,
)
from proctor.results.comparison.comparison import (
    Comparison as Comparison,
)
from proctor.results.case_result import CaseResult as CaseResult
from proctor.results.score import Outcome as Outcome, Score as Score
from proctor.results.statistics import Rate as Rate
from proctor.results.run import Run as Run, ScoreThreshold as ScoreThreshold
from proctor.results.trial import Trial as Trial
from proctor.results.verdict import (
    RunVerdict as RunVerdict,
    judge as judge,
    verdict as verdict,
)
from proctor.running.assertions.agent_runner import (
    AgentRun as AgentRun,
    AgentRunner as AgentRunner,
)
from proctor.running.assertions.assert_pass import (
    assert_pass as assert_pass,
    assert_pass_sync as assert_pass_sync,
    evaluate_sync as evaluate_sync,
    run_and_evaluate as run_and_evaluate,
    run_and_evaluate_sync as run_and_evaluate_sync,
)
from proctor.running.assertions.score_matrix import (
    EvalAssertionError as EvalAssertionError,
)
from proctor.compat.pixie.span_handlers import (
    add_handler as add_handler,
    flush as flush,
    remove_handler as remove_handler,
)
from proctor.tracing.capture import (
    MemoryTraceHandler as MemoryTraceHandler,
    capture_traces as capture_traces,
)
from proctor.tracing.observe import (
    observe as observe,
    start_observation as start_observation,
)
from proctor.tracing.spans import (
    LLMSpan as LLMSpan,
    ObservationNode as ObservationNode,
    ObserveSpan as ObserveSpan,
)
from proctor.tracing.tool import tool as tool
from proctor.tracing.wrap import wrap as wrap
from proctor.version import (
    __version__ as __version__,
)

Judged = JudgedEvaluator  # the former name
