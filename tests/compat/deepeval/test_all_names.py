"""Everything that DeepEval exports and documents can be imported; what is not replaced says so when it is used."""

from __future__ import annotations

import asyncio
import warnings
from pathlib import Path
from typing import Any

import pytest

from proctor.base.errors import UsageError
from proctor.compat import deepeval
from proctor.compat.deepeval import (
    ArenaTestCase,
    BaseMetric,
    Contestant,
    EvaluationDataset,
    Golden,
    LLMTestCase,
    MLLMImage,
    OpenAIModel,
    Turn,
    get_current_golden,
    observe,
    unavailable,
    update_current_span,
    update_current_trace,
)
from proctor.compat.deepeval.import_paths import IMPORT_PATHS
from proctor.compat.deepeval.metric_base import as_judge
from proctor.compat.deepeval.metrics import ExactMatchMetric
from proctor.import_aliases import similar_name

NAMES = """
    deepeval: a_flush_traces assert_test compare evaluate flush_traces instrument log_hyperparameters login
        on_test_run_end
    deepeval.metrics: AgentLoopDetectionMetric AgentResponsivenessMetric AnswerRelevancyMetric ArenaGEval
        ArgumentCorrectnessMetric AudioGlitchMetric AudioIntegrityMetric BaseArenaMetric BaseConversationalMetric
        BaseMetric BiasMetric ContextualPrecisionMetric ContextualRecallMetric ContextualRelevancyMetric
        ConversationCompletenessMetric ConversationalDAGMetric ConversationalGEval ConversationalJevEval DAGMetric
        DeepAcyclicGraph ExactMatchMetric FaithfulnessMetric GEval GEvalTemplate GoalAccuracyMetric
        HallucinationMetric ImageCoherenceMetric ImageEditingMetric ImageHelpfulnessMetric ImageReferenceMetric
        JevEval JsonCorrectnessMetric KnowledgeRetentionMetric MCPTaskCompletionMetric MCPUseMetric MisuseMetric
        MultiTurnMCPUseMetric NonAdviceMetric PIILeakageMetric PatternMatchMetric PlanAdherenceMetric
        PlanQualityMetric PromptAlignmentMetric RoleAdherenceMetric RoleViolationMetric SpeechIntelligibilityMetric
        StepEfficiencyMetric SummarizationMetric TaskCompletionMetric TextToImageMetric ToolCorrectnessMetric
        ToolPermissionMetric ToolUseMetric TopicAdherenceMetric ToxicityMetric TranscriptionAccuracyMetric
        TurnContextualPrecisionMetric TurnContextualRecallMetric TurnContextualRelevancyMetric
        TurnFaithfulnessMetric TurnRelevancyMetric TurnTakingNaturalnessMetric Verdict VoiceConsistencyMetric
        VoiceNaturalnessMetric VoiceReliabilityMetric
    deepeval.test_case: ArenaTestCase Audio AudioChunk Contestant ConversationalTestCase Expectations LLMTestCase
        MCPPromptCall MCPResourceCall MCPServer MCPToolCall MLLMImage MultiTurnParams RetrievedContextData
        SingleTurnParams ToolCall ToolCallParams ToolCallType Turn get_available_mcp_tool_names
        normalize_mcp_servers
    deepeval.dataset: BackgroundNoiseSettings ConversationalGolden EvaluationDataset Expectations Golden
        InterruptionBehavior Persona get_current_golden
    deepeval.models: AmazonBedrockModel AnthropicModel AssemblyAISTTModel AzureOpenAIEmbeddingModel AzureOpenAIModel
        CartesiaSTTModel CartesiaTTSModel DeepEvalBaseEmbeddingModel DeepEvalBaseLLM DeepEvalBaseModel
        DeepEvalBaseSTT DeepEvalBaseSystemOneModel DeepEvalBaseTTS DeepSeekModel DeepgramSTTModel DeepgramTTSModel
        ElevenLabsSTTModel ElevenLabsTTSModel GeminiModel GrokModel KimiModel LiteLLMModel LocalEmbeddingModel
        LocalModel OllamaEmbeddingModel OllamaModel OpenAIEmbeddingModel OpenAIModel OpenAISTTModel OpenAITTSModel
        OpenRouterModel PortkeyModel TypeSafeModel
    deepeval.tracing: AgentSpanContext BaseSpan LlmSpanContext Trace a_flush_traces apply_pending_to_span
        current_span_context current_trace_context evaluate_span evaluate_thread evaluate_trace flush_traces
        next_agent_span next_llm_span next_retriever_span next_span next_tool_span observe pop_pending_for trace
        trace_manager update_agent_span update_current_span update_current_trace update_llm_span
        update_retriever_span update_tool_span
    deepeval.evaluate: AsyncConfig CacheConfig DisplayConfig ErrorConfig assert_test compare evaluate
    deepeval.synthesizer: Evolution PromptEvolution Synthesizer
    deepeval.simulator: ConversationSimulator SimulationNode SimulationTemplate default_simulation_node
    deepeval.prompt: ModelProvider ModelSettings OutputType Prompt PromptInterpolationType PromptMessage
        ReasoningEffort Tool Verbosity
    deepeval.errors: ContextWindowExceededError DeepEvalError MismatchedTestCaseInputsError
        MissingTestCaseParamsError NoMetricsError SpeechAuthError SpeechHTTPError SpeechRateLimitError UserAppError
    deepeval.optimizer: PromptOptimizer
    deepeval.benchmarks: ARC BBQ BigBenchHard BoolQ DROP EquityMedQA GSM8K HellaSwag HumanEval IFEval LAMBADA LogiQA
        MMLU MathQA SQuAD TruthfulQA Winogrande
    deepeval.annotation: a_send_annotation send_annotation
    deepeval.scorer: Scorer
    deepeval.metrics.dag: BaseNode BinaryJudgementNode ChildType DeepAcyclicGraph NodeType NonBinaryJudgementNode
        TaskNode VerdictNode dag_from_dict dag_from_json dag_to_dict dag_to_json
    deepeval.metrics.g_eval: GEval GEvalTemplate Rubric
    deepeval.synthesizer.config: ContextConstructionConfig ConversationalStylingConfig EvolutionConfig
        FiltrationConfig StylingConfig
    deepeval.metrics.conversational_dag: ConversationalTaskNode ConversationalBinaryJudgementNode
        ConversationalNonBinaryJudgementNode ConversationalVerdictNode
    deepeval.test_case.mcp: MCPServer MCPToolCall MCPPromptCall MCPResourceCall
    deepeval.models.base_model: DeepEvalBaseLLM DeepEvalBaseEmbeddingModel
    deepeval.models.llms.openai_model: GPTModel
    deepeval.integrations.langchain: CallbackHandler tool
    deepeval.integrations.llama_index: instrument_llama_index
    deepeval.integrations.crewai: instrument_crewai Agent Crew LLM tool
    deepeval.integrations.pydantic_ai: instrument_pydantic_ai DeepEvalInstrumentationSettings
    deepeval.openai: OpenAI AsyncOpenAI
    deepeval.anthropic: Anthropic AsyncAnthropic
    deepeval.openai_agents: DeepEvalTracingProcessor Agent function_tool
    deepeval.optimizer.algorithms: GEPA MIPROV2 COPRO SIMBA
    deepeval.benchmarks.tasks: MMLUTask HellaSwagTask BigBenchHardTask DROPTask TruthfulQATask
    deepeval.evaluate.configs: AsyncConfig CacheConfig DisplayConfig ErrorConfig TestRunResultDisplay
    deepeval.evaluate.types: EvaluationResult MetricData TestResult
    deepeval.tracing.context: update_current_span update_current_trace current_span_context
    deepeval.metrics.indicator: metric_progress_indicator
    deepeval.metrics.utils: trimAndLoadJson initialize_model
"""
"""DeepEval's modules and the names that each exports, and those that its documentation imports."""


def listed_names() -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    module = ""
    for word in NAMES.split():
        if word.endswith(":"):
            module = word[:-1]
        else:
            pairs.append((module, word))
    return pairs


def test_every_module_and_every_name_can_be_imported() -> None:
    paths = {".".join(path.split(".")[:n]) for path in IMPORT_PATHS for n in range(1, 5)}
    for module, name in listed_names():
        assert module.removeprefix("deepeval").removeprefix(".") in {"", *paths}, module
        assert name in deepeval.__all__, f"{module}.{name}"
        assert getattr(deepeval, name) is not None


@pytest.mark.parametrize("name", unavailable.__all__)
def test_a_name_that_is_not_replaced_says_what_to_use_instead(name: str) -> None:
    thing = getattr(deepeval, name)
    assert isinstance(thing, type)
    if issubclass(thing, Exception):
        with pytest.raises(thing):
            raise thing
        return
    with pytest.raises(UsageError, match=f"^{name} ") as caught:
        thing("anything", model=3)
    assert len(str(caught.value)) > len(name) + 20


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("PaintingMetric", None),
        ("FaithfulnesMetric", "FaithfulnessMetric"),
        ("ToolCorrectness", "ToolCorrectnessMetric"),
        ("asert_test", "assert_test"),
        ("constant", None),
    ],
)
def test_a_hint_names_something_related(name: str, similar: str | None) -> None:
    assert similar_name(name, deepeval.__all__) == similar


def test_two_metrics_are_not_similar_because_both_are_metrics() -> None:
    assert similar_name("TextToImageMetric", ["PIILeakageMetric", "GEval"]) is None


class Length(BaseMetric):
    """Whether the output is longer than three characters."""

    def __init__(self) -> None:
        self.threshold = 0.5
        self.seen: list[Any] = []

    def measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        self.seen.append(test_case)
        self.score = float(len(test_case.actual_output or "") > 3)
        self.success = self.score >= 0.5
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)


def test_what_the_application_reports_becomes_the_test_case() -> None:
    @observe()
    def application(question: str) -> str:
        assert get_current_golden() is golden
        update_current_trace(retrieval_context=["a passage"], metadata={"step": 1}, tags=["t"])
        update_current_trace(output="another answer")
        return "an answer"

    dataset = EvaluationDataset(goldens=[Golden(input="Where?", expected_output="another answer")])
    for golden in dataset.evals_iterator(metrics=[ExactMatchMetric()]):
        application(golden.input)
    [case] = dataset.test_cases
    assert (case.actual_output, case.retrieval_context, case.tags) == ("another answer", ["a passage"], ["t"])
    assert dataset.evaluation_result.test_results[0].success
    assert get_current_golden() is None


def test_a_step_with_metrics_is_scored_on_its_own() -> None:
    @observe(metrics=[Length()])
    def retrieve(query: str) -> str:
        update_current_span(test_case=LLMTestCase(input="a query", actual_output="long enough"))
        return "x"

    @observe(metrics=[Length()], type="llm", name="step")
    async def generate(text: str) -> str:
        return "x"

    @observe()
    def application(question: str) -> str:
        retrieve(question)
        return asyncio.run(generate(question))

    dataset = EvaluationDataset(goldens=[Golden(input="Where?")])
    for golden in dataset.evals_iterator():
        application(golden.input)
    results = dataset.evaluation_result.test_results
    assert [(test.input, test.actual_output, test.success) for test in results] == [
        ("a query", "long enough", True),
        ("Where?", "x", False),
    ]


def test_the_coroutine_of_an_async_application_is_run() -> None:
    @observe()
    async def application(question: str) -> str:
        await asyncio.sleep(0)
        update_current_trace(tags=["async"])
        return question.upper()

    dataset = EvaluationDataset(
        goldens=[Golden(input="a", expected_output="A"), Golden(input="b", expected_output="x")]
    )
    for golden in dataset.evals_iterator(metrics=[ExactMatchMetric()]):
        dataset.evaluate(application(golden.input))
    assert [test.success for test in dataset.evaluation_result.test_results] == [True, False]
    assert [case.tags for case in dataset.test_cases] == [["async"], ["async"]]


@pytest.mark.parametrize("name", ["pull", "push", "queue", "generate_goldens_from_docs"])
def test_methods_of_the_service_say_what_to_use_instead(name: str) -> None:
    with pytest.raises(UsageError, match=r"here; |does not generate"):
        getattr(EvaluationDataset(), name)(alias="x")


def test_internal_parameters_of_measure_have_no_effect() -> None:
    case = LLMTestCase(input="x", actual_output="y", expected_output="y")
    assert ExactMatchMetric().measure(case, _show_indicator=False) == 1.0
    assert asyncio.run(ExactMatchMetric().a_measure(case, _show_indicator=False, _in_component=True)) == 1.0
    with pytest.raises(TypeError, match="no parameter 'show'"):
        ExactMatchMetric().measure(case, show=False)


def test_updates_outside_of_an_evaluation_do_nothing() -> None:
    update_current_trace(output="x")
    update_current_span(test_case=LLMTestCase(input="x"))
    with pytest.raises(ValueError, match="needs metrics"):
        for _ in EvaluationDataset(goldens=[Golden(input="x")]).evals_iterator():
            pass


def test_a_model_class_names_a_judge() -> None:
    assert as_judge(OpenAIModel(model="gpt-4.1", temperature=0.2)) == {"model": "openai:gpt-4.1", "temperature": 0.2}
    assert as_judge(deepeval.GPTModel()) == {"model": "openai:gpt-4.1"}
    ollama = deepeval.OllamaModel(model="qwen3", base_url="http://localhost:1/v1")
    assert as_judge(ollama) == {"model": "ollama:qwen3", "base_url": "http://localhost:1/v1"}
    with_key = as_judge(OpenAIModel(model="gpt-4.1", api_key="k", base_url="http://localhost:1/v1"))
    assert with_key.name == "openai:gpt-4.1"
    with pytest.raises(UsageError, match="needs the name of a model"):
        deepeval.AnthropicModel()
    with pytest.raises(TypeError, match="does not take 'tempature'"):
        OpenAIModel(tempature=1)
    with pytest.raises(UsageError, match="does not generate text"):
        OpenAIModel().generate("Hello")


def test_an_image_is_data_and_a_metric_that_meets_one_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"png")
    local, remote = MLLMImage(url=str(tmp_path / "a.png")), MLLMImage(url="https://example.com/b.png")
    assert (local.local, local.filename, local.mimeType, local.dataBase64) == (True, "a.png", "image/png", "cG5n")
    assert (remote.local, remote.filename, remote.dataBase64) == (False, "b.png", None)
    address = f"file://{tmp_path / 'a.png'}"
    for wrong in (
        {},
        {"dataBase64": "x"},
        {"url": "nowhere.png"},
        {"url": address},
        {"url": remote.url, "local": True},
    ):
        with pytest.raises(ValueError, match="MLLMImage"):
            MLLMImage(**wrong)
    case = LLMTestCase(input=f"What is {remote}?", actual_output="a", expected_output="a")
    with pytest.raises(UsageError, match="has an image"):
        ExactMatchMetric().measure(case)


def test_contestants_share_an_input() -> None:
    def contestant(name: str, text: str) -> Contestant:
        return Contestant(name=name, test_case=LLMTestCase(input=text, actual_output="x"))

    assert len(ArenaTestCase(contestants=[contestant("a", "q"), contestant("b", "q")]).contestants) == 2
    with pytest.raises(ValueError, match="unique"):
        ArenaTestCase(contestants=[contestant("a", "q"), contestant("a", "q")])
    with pytest.raises(ValueError, match="same 'input'"):
        ArenaTestCase(contestants=[contestant("a", "q"), contestant("b", "other")])


def test_calls_of_mcp_tools_are_marked() -> None:
    server = deepeval.MCPServer(server_name="a", available_tools=[{"name": "search"}, {"x": 1}])
    calls = [deepeval.ToolCall(name=name) for name in ("search", "local")]
    case = LLMTestCase(input="x", actual_output="y", tools_called=calls)
    deepeval.process_mcp_servers([case], [server])
    assert [call.type for call in case.tools_called or ()] == [
        deepeval.ToolCallType.MCP,
        deepeval.ToolCallType.FUNCTION,
    ]
    assert case.mcp_servers == [server]


@pytest.mark.parametrize(
    ("roles", "units"),
    [
        ("uua", ["uua"]),
        ("uaa", ["uaa"]),
        ("uau", ["ua"]),
        ("aua", ["aua"]),
        ("aau", []),
        ("uaua", ["ua", "ua"]),
        ("", []),
    ],
)
def test_exchanges_end_with_an_answer(roles: str, units: list[str]) -> None:
    names = {"u": "user", "a": "assistant"}
    found = deepeval.get_unit_interactions([Turn(role=names[role], content="x") for role in roles])
    assert ["".join(turn.role[0] for turn in unit) for unit in found] == units


def test_the_fields_of_a_test_case_can_be_checked_by_your_own_metric() -> None:
    params = [deepeval.SingleTurnParams.INPUT, deepeval.SingleTurnParams.CONTEXT]
    deepeval.check_llm_test_case_params(LLMTestCase(input="x", context=["c"]), params, None, None, Length())
    with pytest.raises(deepeval.MissingTestCaseParamsError, match="Length needs context"):
        deepeval.check_llm_test_case_params(LLMTestCase(input="x"), params, None, None, Length())
    [copied] = deepeval.copy_metrics([ExactMatchMetric()])
    assert copied.score is None


def test_a_persona_describes_the_user() -> None:
    persona = deepeval.Persona(name="Dana", characteristics="In a hurry.", voice="coral")
    golden = deepeval.ConversationalGolden(scenario="s", persona=persona, turns=[Turn(role="user", content="Hi")])
    assert golden.user_description == "In a hurry."
    [case] = deepeval.convert_convo_goldens_to_convo_test_cases([golden])
    assert case.user_description == "In a hurry."
    [again] = deepeval.convert_convo_test_cases_to_convo_goldens([case])
    assert again.persona == deepeval.Persona(characteristics="In a hurry.")
    with pytest.raises(ValueError, match="conflicting"):
        deepeval.ConversationalGolden(scenario="s", persona=persona, user_description="Calm.")
    for wrong in ({"frequency": "always"}, {"overlap": "shout"}):
        with pytest.raises(ValueError, match="must be"):
            deepeval.InterruptionBehavior(**wrong)


def test_decorators_of_a_module_leave_its_functions_as_they_are() -> None:
    @deepeval.log_hyperparameters(model="gpt-4", prompt_template="p")
    def hyperparameters() -> dict[str, Any]:
        return {"temperature": 1}

    assert hyperparameters() == {"temperature": 1}
    with pytest.warns(UserWarning, match="has no effect"):
        deepeval.login("key")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert deepeval.on_test_run_end(hyperparameters) is hyperparameters


@pytest.mark.parametrize(
    ("options", "called", "score"),
    [
        ({"denied_tools": ["shell"]}, ["search", "shell"], 0.5),
        ({"allowed_tools": ["read"]}, ["read", "read"], 1.0),
        ({"allowed_tools": ["read", "shell"], "denied_tools": ["shell"]}, ["shell"], 0.0),
        ({"denied_tools": ["shell"]}, [], 1.0),
    ],
)
def test_the_share_of_permitted_tool_calls(options: dict[str, Any], called: list[str], score: float) -> None:
    metric = deepeval.ToolPermissionMetric(**options)
    calls = [deepeval.ToolCall(name=name) for name in called]
    metric.measure(LLMTestCase(input="x", actual_output="y", tools_called=calls))
    assert (metric.score, metric.is_successful()) == (score, score == 1.0)
    with pytest.raises(deepeval.MissingTestCaseParamsError):
        metric.measure(LLMTestCase(input="x", actual_output="y"))
    with pytest.raises(ValueError, match="allowed_tools or denied_tools"):
        deepeval.ToolPermissionMetric()


def test_turns_are_copied_and_calls_are_printed_as_in_deepeval() -> None:
    turn = Turn(role="user", content="Hello")
    case = deepeval.ConversationalTestCase(turns=[turn])
    case.turns[0].content = "changed"
    assert turn.content == "Hello"
    call = deepeval.ToolCall(name="search", description="Searches", input_parameters={"q": 1})
    assert repr(call) == """ToolCall(name="search", description="Searches", input_parameters={'q': 1})"""
