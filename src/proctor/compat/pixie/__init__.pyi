"""pixie's names and the module that defines each; `__init__.py` reads it too."""

# ruff: noqa: I001  one import for each module reads better than one for each name

from proctor.agents.runnable_agent import (
    Runnable as Runnable,
)
from proctor.cases.suite import (
    NamedData as NamedData,
)
from proctor.compat.pixie.autoevals import (
    AutoevalsAdapter as AutoevalsAdapter,
)
from proctor.evaluators import (
    AnswerCorrectness as AnswerCorrectness,
    AnswerRelevancy as AnswerRelevancy,
    Battle as Battle,
    ClosedQA as ClosedQA,
    ContextRelevancy as ContextRelevancy,
    EmbeddingSimilarity as EmbeddingSimilarity,
    ExactMatch as ExactMatch,
    Factuality as Factuality,
    Faithfulness as Faithfulness,
    Humor as Humor,
    JSONDiff as JSONDiff,
    LevenshteinMatch as LevenshteinMatch,
    ListContains as ListContains,
    Moderation as Moderation,
    NumericDiff as NumericDiff,
    Possible as Possible,
    Security as Security,
    Sql as Sql,
    Summary as Summary,
    Translation as Translation,
    ValidJSON as ValidJSON,
)
from proctor.compat.pixie.dataset_assertions import (
    assert_dataset_pass as assert_dataset_pass,
    assert_dataset_pass_sync as assert_dataset_pass_sync,
)
from proctor.compat.pixie.datasets import (
    Dataset as Dataset,
    DatasetStore as DatasetStore,
)
from proctor.evaluators.from_trace import (
    as_evaluable as as_evaluable,
    by_name as by_name,
    last_llm_call as last_llm_call,
    root as root,
)
from proctor.evaluators.prompt_evaluators import (
    create_agent_evaluator as create_agent_evaluator,
    create_llm_evaluator as create_llm_evaluator,
)
from proctor.compat.pixie.evaluable import (
    Evaluable as Evaluable,
    TestCase as TestCase,
)
from proctor.evaluators.calling import evaluate as evaluate
from proctor.evaluators.evaluation import (
    Evaluation as Evaluation,
    Evaluator as Evaluator,
)
from proctor.compat.pixie.scorecard import (
    DatasetEntryResult as DatasetEntryResult,
    DatasetScorecard as DatasetScorecard,
    generate_dataset_scorecard_html as generate_dataset_scorecard_html,
    save_dataset_scorecard as save_dataset_scorecard,
)
from proctor.results.run import ScoreThreshold as ScoreThreshold
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
from proctor.tracing.wrap import (
    wrap as wrap,
)
from proctor.base.json_data import (
    UNSET as UNSET,
)
from proctor.version import (
    __version__ as __version__,
)
from proctor.compat.pixie.llm_tracing import (
    enable_llm_tracing as enable_llm_tracing,
)
