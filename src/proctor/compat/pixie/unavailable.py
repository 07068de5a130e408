"""pixie's names that Proctor does not replace; each says what to use instead."""

from __future__ import annotations

from proctor.compat.unavailable import unavailable_names

_COMMAND = "is a command of pixie; run `proctor {}` instead"

__all__, __getattr__ = unavailable_names(
    __name__,
    {
        "is not available: Proctor stores traces in .proctor; list them with `proctor trace list`, "
        "and read them with `proctor trace show`": """
            ObservationStore StorageHandler Observation DB serialize_span deserialize_span""",
        "is not available: results are in .proctor; read them with `proctor show --json`": """
            EvaluationResult EntryResult DatasetResult RunResult save_test_result load_test_result generate_test_id
            PendingEvaluation""",
        "is not available: call proctor.run(), or run `proctor test`": """
            LoadedDataset DatasetEntry load_dataset_entries load_dataset run_dataset run_entry evaluate_entry
            run_runnable resolve_runnable_reference load_input_kwargs discover_dataset_files""",
        "is not available: Proctor has no diagrams of applications; `proctor trace show` shows what was called": """
            DAG_NAME_PATTERN is_valid_dag_name DagNode ValidationResult parse_dag validate_dag generate_mermaid
            TraceCheckResult check_trace_against_dag check_last_trace dag_validate dag_check_trace""",
        "is internal to pixie: run the application with `proctor test`, or in a test with assert_pass()": """
            set_eval_input get_eval_input clear_eval_input init_eval_output get_eval_output clear_eval_output
            serialize_wrap_data deserialize_wrap_data filter_by_purpose ensure_eval_capture_registered logger_provider
            get_trace_log_processor set_trace_log_processor TraceLogProcessor EvalCaptureLogProcessor
            EntryInputLog LLMSpanLog LLMSpanProcessor LLMTraceLogger ObservationContext
            WrapNameCollisionError WrapTypeMismatchError""",
        "is not available: the limits of judges are set in the project file, see docs/judges.md": """
            EvalRateLimiter configure_rate_limits_from_config get_rate_limiter""",
        "is not available: Proctor is configured with proctor.toml or [tool.proctor]": "PixieConfig get_config",
        _COMMAND.format("test"): "main",
        _COMMAND.format("show --analysis"): "analyze",
        _COMMAND.format("init"): "init_pixie_dir",
        _COMMAND.format("dataset"): "dataset_create dataset_list dataset_save format_dataset_table",
        _COMMAND.format("trace"): "trace_list trace_show trace_last trace_verify",
        _COMMAND.format("trace to-case"): "format_trace_to_entry",
        _COMMAND.format("view"): """
            start stop SSEManager create_app build_url ServerStatus get_server_status run_server open_webui
            start_detached stop_server ensure_server watch_artifacts""",
    },
)
