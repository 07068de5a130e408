"""DeepEval's names that Proctor does not replace; each says what to use instead."""

from __future__ import annotations

from proctor.compat.unavailable import unavailable_names

_CLOUD = "belongs to Confident AI's service, which Proctor does not use: "

__all__, __getattr__ = unavailable_names(
    __name__,
    {
        "scores images, which Proctor does not do; describe the image in text and use GEval": """
            ImageCoherenceMetric ImageEditingMetric ImageHelpfulnessMetric ImageReferenceMetric TextToImageMetric
            MultimodalGEval MultimodalAnswerRelevancyMetric MultimodalContextualPrecisionMetric
            MultimodalContextualRecallMetric MultimodalContextualRelevancyMetric MultimodalFaithfulnessMetric
            MultimodalToolCorrectnessMetric MLLMTestCase MLLMTestCaseParams""",
        "scores speech, which Proctor does not do; score the transcript with GEval or ConversationalGEval": """
            AgentResponsivenessMetric AudioGlitchMetric AudioIntegrityMetric SpeechIntelligibilityMetric
            TranscriptionAccuracyMetric TurnTakingNaturalnessMetric VoiceConsistencyMetric VoiceNaturalnessMetric
            VoiceReliabilityMetric Audio AudioChunk
            AssemblyAISTTModel CartesiaSTTModel CartesiaTTSModel DeepEvalBaseSTT DeepEvalBaseTTS DeepgramSTTModel
            DeepgramTTSModel ElevenLabsSTTModel ElevenLabsTTSModel OpenAISTTModel OpenAITTSModel
            SpeechAuthError SpeechHTTPError SpeechRateLimitError""",
        "compares several agents on one input; run each of them and use `proctor compare`": """
            ArenaGEval BaseArenaMetric compare""",
        "scores MCP calls; put them into tools_called and use ToolCorrectnessMetric or TaskCompletionMetric": """
            MCPTaskCompletionMetric MCPUseMetric MultiTurnMCPUseMetric normalize_mcp_servers""",
        "is not available; write the rule as a criterion of GEval, or use BiasMetric and ToxicityMetric": """
            MisuseMetric NonAdviceMetric RoleViolationMetric""",
        "is not available; use StepEfficiencyMetric, TaskCompletionMetric, or GEval with your own criterion": """
            AgentLoopDetectionMetric PlanAdherenceMetric PlanQualityMetric""",
        "is not available; use ToolCorrectnessMetric and ArgumentCorrectnessMetric": "ToolUseMetric",
        "is not available; use ConversationalGEval with your own criterion": """
            TopicAdherenceMetric ConversationalJevEval ConversationRelevancyMetric""",
        "is not available; use GEval": "JevEval GEvalTemplate RagasMetric Scorer Verdict",
        "scores the passages of every turn, which Proctor does for single turns; make an LLMTestCase of each turn": """
            TurnContextualPrecisionMetric TurnContextualRecallMetric TurnContextualRelevancyMetric
            TurnFaithfulnessMetric""",
        "is not available; write conversations as turns, or let Proctor simulate the user, "
        "see docs/adk.md#simulated-users": """
            ConversationSimulator SimulationNode SimulationTemplate default_simulation_node""",
        "is not available; Proctor does not generate goldens: write cases, or turn traces into cases with "
        "`proctor trace to-case`": """
            Synthesizer Evolution PromptEvolution ContextConstructionConfig ConversationalStylingConfig
            EvolutionConfig FiltrationConfig StylingConfig""",
        "is not available; Proctor does not optimize prompts: compare two of them with `proctor compare`": """
            PromptOptimizer GEPA MIPROV2 COPRO SIMBA Rewriter""",
        "is not available; keep prompts in your own code": """
            Prompt PromptMessage PromptInterpolationType ModelProvider ModelSettings OutputType ReasoningEffort
            Verbosity Tool""",
        "is a public benchmark of models, not a test of an agent; use DeepEval itself for it": """
            ARC BBQ BigBenchHard BoolQ DROP EquityMedQA GSM8K HellaSwag HumanEval IFEval LAMBADA LogiQA MMLU MathQA
            SQuAD TruthfulQA Winogrande MMLUTask BigBenchHardTask HellaSwagTask TruthfulQATask DROPTask
            ARCMode BBQTask EquityMedQATask HumanEvalTask LogiQATask MathQATask SQuADTask
            TruthfulQAMode DeepEvalBaseBenchmark""",
        _CLOUD + "results stay in .proctor": """
            send_annotation a_send_annotation evaluate_span evaluate_thread evaluate_trace track monitor a_monitor
            send_feedback TestRun LLMApiTestCase ConversationalApiTestCase TurnApi trace_manager Confident""",
        "is not available; mark functions with observe, or turn on OpenTelemetry, see docs/tracing.md": """
            instrument trace next_span next_agent_span next_llm_span next_retriever_span next_tool_span
            apply_pending_to_span pop_pending_for current_span_context current_trace_context AgentSpanContext
            LlmSpanContext BaseSpan AgentSpan LlmSpan RetrieverSpan ToolSpan Trace TraceSpanStatus
            CallbackHandler DeepEvalCallbackHandler DeepEvalHuggingFaceCallback patch_openai_classes
            capture_tracing_integration AgentCoreInstrumentationSettings ConfidentInstrumentationSettings
            DeepEvalInstrumentationSettings DeepEvalTracingProcessor StrandsInstrumentationSettings
            instrument_agentcore instrument_crewai instrument_google_adk instrument_llama_index
            instrument_openinference instrument_pydantic_ai instrument_strands reset_crewai_instrumentation
            Agent Crew LLM Runner function_tool tool""",
        "is not available; use GEval with a criterion for each class": """
            BaseClassifier Label Classifier ClassifierTemplate RefusalClassifier EscalationClassifier
            ScopeAdherenceClassifier ClarificationClassifier AbstentionClassifier PromptInjectionClassifier
            DataLeakageClassifier ForbiddenCommitmentsClassifier ToneAdherenceClassifier RequiredDisclosureClassifier
            ResponseLanguageClassifier InstructionCompletenessClassifier ResolutionClassifier""",
        "is an attack on an agent; use the safety metrics, such as PIILeakageMetric and ToxicityMetric": """
            RedTeamer AttackEnhancement Vulnerability Guardrails""",
        "is internal to DeepEval; your own metric needs measure(), a_measure() and is_successful() only": """
            metric_progress_indicator trimAndLoadJson initialize_model initialize_embedding_model
            print_verbose_logs get_or_create_event_loop ConversationalBaseNode""",
        "is not available; use EmbeddingSimilarity with PROCTOR_EMBEDDINGS, see docs/evaluators.md": """
            DeepEvalBaseEmbeddingModel AzureOpenAIEmbeddingModel LocalEmbeddingModel OllamaEmbeddingModel
            OpenAIEmbeddingModel""",
        "is not available; name the judge with model='provider:model', or derive from DeepEvalBaseLLM": """
            DeepEvalBaseSystemOneModel PortkeyModel TypeSafeModel""",
        "reads passages from files, which Proctor does not do; read the file and pass its text": """
            RetrievedContextData Context""",
        "describes expectations for Confident AI; use expected_output or a criterion of GEval": "Expectations",
        "is the client of another package; import it from there, Proctor records its calls": """
            OpenAI AsyncOpenAI Anthropic AsyncAnthropic""",
        "is not available; build DAGMetric from nodes in Python": """
            dag_from_dict dag_from_json dag_to_dict dag_to_json BaseNode ChildType NodeType""",
    },
)
