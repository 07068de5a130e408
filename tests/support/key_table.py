"""Every key of an agent.yaml, and what becomes of it: the test that shows its effect, or how it is refused."""

from __future__ import annotations

from typing import Any

from proctor.declared.agent_reader import ELSEWHERE

REFERENCE = {
    "agent": """name description author model instructions response_format tools evaluations test_cases test_cases_file
        execution embedding_provider claude openai observability deployment""",
    "model": "provider name temperature max_tokens top_p endpoint api_key api_version auth_provider",
    "embedding_provider": "provider name temperature max_tokens top_p endpoint api_key api_version auth_provider",
    "evaluations.model": "provider name temperature max_tokens top_p endpoint api_key api_version auth_provider",
    "instructions": "file inline",
    "claude": """max_turns max_budget_usd fallback_model effort extended_thinking allowed_tools disallowed_tools
        permission_mode agents setting_sources bash file_system web_search""",
    "extended_thinking": "enabled budget_tokens",
    "openai": "max_turns effort max_budget_usd fallback_model disallowed_tools permissions",
    "permissions": "allowed_tools disallowed_tools",
    "tools.vectorstore": """name description type source vector_field id_field meta_fields chunk_size chunk_overlap
        embedding_model embedding_dimensions database top_k min_similarity_score record_path record_prefix meta_prefix
        field_separator delimiter defer_loading""",
    "tools.function": "name description type file function parameters defer_loading",
    "tools.mcp": """name description type transport command args env env_file url headers timeout request_timeout
        load_tools load_prompts is_retrieval registry_name defer_loading""",
    "tools.prompt": "name description type template file parameters model defer_loading",
    "tools.hierarchical_document": "name type source chunking_strategy search_mode top_k enable_reranking",
    "test_cases": "name input expected_tools ground_truth files retrieval_context evaluations turns",
    "turns": "input ground_truth expected_tools files retrieval_context evaluations turn_config",
    "expected_tools": "name args count",
    "files": "path url type description pages sheet range cache",
    "evaluations": "model metrics optimizer",
    "metrics.standard": """type metric threshold enabled scale model fail_on_error retry_on_failure timeout_ms
        custom_prompt case_insensitive strip_whitespace strip_punctuation absolute_tolerance relative_tolerance
        accept_percent accept_thousands_separators response_path""",
    "metrics.geval": """type name criteria evaluation_steps evaluation_params strict_mode threshold model enabled
        fail_on_error""",
    "metrics.rag": "type metric_type threshold include_reason model enabled fail_on_error",
    "metrics.code": "type grader threshold enabled fail_on_error name",
    "execution": """file_timeout llm_timeout download_timeout cache_enabled cache_dir verbose quiet
        parallel_test_cases""",
}
"""The keys of HoloDeck's own schema."""

SHOWN = """
agent: name description evaluations execution
    cases/formats/holodeck/test_agent_file.py::test_an_agent_with_tests_becomes_a_suite
agent: author
    declared/test_every_key.py::test_the_author_is_kept_when_a_file_is_written_anew
agent: agent
    cases/formats/holodeck/test_agent_file.py::test_an_agent_of_ones_own_may_be_named
agent: model
    declared/test_declared_keys.py::test_how_the_model_is_asked
agent: instructions
    declared/test_declared_agent.py::test_instructions_may_stand_in_a_file_whose_notes_are_not_said
agent: tools
    declared/test_declared_keys.py::test_a_function_is_offered_as_its_signature_and_the_file_say
agent: test_cases
    declared/test_declared_agent.py::test_many_conversations_at_once_are_kept_apart
agent: response_format
    declared/test_declared_agent.py::test_an_answer_of_a_given_shape_is_data
agent: test_cases_file
    cases/formats/holodeck/test_agent_file.py::test_tests_may_stand_in_a_file_of_their_own
agent: embedding_provider
    declared/test_vendor_option_keys.py::test_an_embedding_provider_is_asked_where_it_is_and_with_its_key
agent: claude
    declared/test_declared_keys.py::test_allowed_tools_of_claude_are_the_only_ones_offered
agent: openai
    declared/test_declared_keys.py::test_effort_is_told_to_the_model
model: provider
    declared/test_declared_agent.py::test_two_tools_are_used_in_each_of_three_turns
model: name temperature max_tokens top_p
    declared/test_declared_keys.py::test_how_the_model_is_asked
model: endpoint api_key
    declared/test_declared_agent.py::test_a_key_is_read_from_the_environment_when_it_is_needed_and_never_told
model: api_version
    declared/test_declared_keys.py::test_azure_is_told_its_version
embedding_provider: provider name endpoint api_key
    declared/test_vendor_option_keys.py::test_an_embedding_provider_is_asked_where_it_is_and_with_its_key
evaluations.model: provider name temperature max_tokens top_p endpoint api_key
    declared/test_metric_keys.py::test_how_the_judge_is_asked
evaluations.model: api_version
    declared/test_metric_keys.py::test_azure_is_told_the_api_version_of_the_judge
instructions: file
    declared/test_declared_agent.py::test_instructions_may_stand_in_a_file_whose_notes_are_not_said
instructions: inline
    declared/test_declared_agent.py::test_the_fingerprint_changes_with_what_changes_the_agent
claude: max_turns
    declared/test_vendor_option_keys.py::test_max_turns_holds_for_either_vendor
openai: max_turns
    declared/test_vendor_option_keys.py::test_max_turns_holds_for_either_vendor
claude: fallback_model
    declared/test_vendor_option_keys.py::test_fallback_model_is_asked_where_the_first_cannot_be
openai: fallback_model
    declared/test_vendor_option_keys.py::test_fallback_model_is_asked_where_the_first_cannot_be
claude: effort
    declared/test_vendor_option_keys.py::test_effort_is_told_to_either_vendor_and_temperature_is_not
openai: effort
    declared/test_vendor_option_keys.py::test_effort_is_told_to_either_vendor_and_temperature_is_not
claude: disallowed_tools
    declared/test_vendor_option_keys.py::test_disallowed_tools_are_not_offered_by_either_vendor
openai: disallowed_tools permissions
    declared/test_declared_keys.py::test_tools_that_are_not_allowed_are_not_offered
permissions: allowed_tools disallowed_tools
    declared/test_declared_keys.py::test_tools_that_are_not_allowed_are_not_offered
claude: allowed_tools
    declared/test_declared_keys.py::test_allowed_tools_of_claude_are_the_only_ones_offered
claude: extended_thinking
    declared/test_vendor_option_keys.py::test_extended_thinking_is_told_where_it_is_enabled
extended_thinking: enabled budget_tokens
    declared/test_vendor_option_keys.py::test_extended_thinking_is_told_where_it_is_enabled
tools.vectorstore: source vector_field id_field meta_fields meta_prefix field_separator record_path delimiter chunk_size
    declared/test_store_keys.py::test_what_is_found_is_as_the_file_says
tools.vectorstore: database
    declared/test_store_keys.py::test_what_is_found_is_as_the_file_says
tools.vectorstore: chunk_overlap
    declared/test_store_keys.py::test_passages_share_as_many_words_as_chunk_overlap_says
tools.vectorstore: top_k min_similarity_score
    declared/test_store_keys.py::test_as_much_is_found_as_top_k_and_min_similarity_score_allow
tools.vectorstore: embedding_model
    declared/test_store_keys.py::test_embedding_model_is_who_is_asked
tools.vectorstore: embedding_dimensions
    declared/test_store_keys.py::test_of_longer_vectors_only_embedding_dimensions_count
tools.vectorstore: name description type
    declared/test_store_keys.py::test_a_store_is_told_to_the_model_by_name_and_description
tools.vectorstore: defer_loading
    declared/test_vendor_option_keys.py::test_defer_loading_hides_a_tool_of_any_type_until_it_is_searched_for
tools.function: name description type file function parameters
    declared/test_vendor_option_keys.py::test_a_function_is_a_tool_under_the_name_that_the_file_gives_it
tools.function: defer_loading
    declared/test_declared_keys.py::test_a_tool_whose_loading_is_deferred_has_to_be_searched_for
tools.prompt: name description type file parameters
    declared/test_vendor_option_keys.py::test_a_prompt_may_stand_in_a_file_and_say_what_it_takes
tools.prompt: template model
    declared/test_declared_agent.py::test_a_prompt_is_a_tool_that_asks_a_model
tools.prompt: defer_loading
    declared/test_vendor_option_keys.py::test_defer_loading_hides_a_tool_of_any_type_until_it_is_searched_for
tools.mcp: name type command args env env_file
    declared/test_mcp_servers.py::test_a_server_over_stdio_gives_its_tools_to_the_agent
tools.mcp: transport headers is_retrieval
    declared/test_mcp_servers.py::test_a_server_may_be_anywhere_and_retrieve_what_the_answer_rests_on
tools.mcp: url timeout
    declared/test_mcp_servers.py::test_a_server_that_never_answers_is_given_up_after_timeout
tools.mcp: request_timeout
    declared/test_mcp_servers.py::test_a_tool_that_never_answers_is_given_up_after_request_timeout
tools.mcp: defer_loading
    declared/test_mcp_servers.py::test_defer_loading_hides_the_tools_of_a_server_until_they_are_searched_for
test_cases: name input
    declared/test_test_case_keys.py::test_a_test_is_reported_by_its_name_and_asks_its_input
test_cases: ground_truth
    declared/test_test_case_keys.py::test_an_answer_is_compared_with_its_ground_truth
test_cases: expected_tools
    declared/test_test_case_keys.py::test_expected_tools_are_looked_for_in_the_calls
test_cases: evaluations
    declared/test_test_case_keys.py::test_evaluations_of_a_test_and_of_a_turn_replace_the_agents
test_cases: retrieval_context
    declared/test_test_case_keys.py::test_retrieval_context_of_a_test_or_turn_is_what_its_answer_rests_on
test_cases: files
    declared/test_test_case_keys.py::test_files_of_a_test_and_of_a_turn_are_told_with_path_and_description
test_cases: turns
    declared/test_test_case_keys.py::test_turns_are_asked_one_after_another_and_each_is_scored
turns: input ground_truth expected_tools turn_config
    declared/test_test_case_keys.py::test_turns_are_asked_one_after_another_and_each_is_scored
turns: evaluations
    declared/test_test_case_keys.py::test_evaluations_of_a_test_and_of_a_turn_replace_the_agents
turns: retrieval_context
    declared/test_test_case_keys.py::test_retrieval_context_of_a_test_or_turn_is_what_its_answer_rests_on
turns: files
    declared/test_test_case_keys.py::test_files_of_a_test_and_of_a_turn_are_told_with_path_and_description
expected_tools: name args count
    declared/test_test_case_keys.py::test_expected_tools_are_looked_for_in_the_calls
files: path description
    declared/test_test_case_keys.py::test_files_of_a_test_and_of_a_turn_are_told_with_path_and_description
files: type
    declared/test_test_case_keys.py::test_the_type_of_a_file_says_how_it_is_read
files: url cache
    declared/test_test_case_keys.py::test_a_url_is_fetched_and_kept_as_the_file_says
files: pages
    declared/test_test_case_keys.py::test_pages_that_a_file_does_not_have_are_asked_for_in_vain
files: sheet range
    declared/test_test_case_keys.py::test_of_a_workbook_the_sheet_and_range_are_read
evaluations: metrics
    cases/formats/holodeck/test_agent_file.py::test_an_agent_with_tests_becomes_a_suite
evaluations: model
    declared/test_metric_keys.py::test_how_the_judge_is_asked
metrics.standard: metric threshold enabled case_insensitive strip_whitespace strip_punctuation absolute_tolerance
    declared/test_metric_keys.py::test_a_key_of_a_computed_metric_decides
metrics.standard: relative_tolerance accept_percent accept_thousands_separators response_path type
    declared/test_metric_keys.py::test_a_key_of_a_computed_metric_decides
metrics.standard: fail_on_error
    declared/test_metric_keys.py::test_fail_on_error_and_enabled_decide_whether_a_broken_metric_counts
metrics.standard: timeout_ms model
    declared/test_metric_keys.py::test_timeout_ms_gives_up_a_judge_that_does_not_answer
metrics.standard: scale
    declared/test_metric_keys.py::test_a_mark_counts_as_scale_and_threshold_say
metrics.standard: custom_prompt
    declared/test_metric_keys.py::test_custom_prompt_is_what_the_judge_is_asked
metrics.standard: retry_on_failure
    declared/test_metric_keys.py::test_retry_on_failure_asks_a_judge_again_that_made_no_sense
metrics.geval: type name criteria model enabled fail_on_error
    declared/test_metric_keys.py::test_fail_on_error_and_enabled_decide_whether_a_broken_metric_counts
metrics.geval: evaluation_steps evaluation_params threshold
    declared/test_metric_keys.py::test_what_a_geval_metric_says_is_what_its_judge_is_asked
metrics.geval: strict_mode
    declared/test_metric_keys.py::test_strict_mode_knows_nothing_between_all_and_nothing
metrics.rag: type metric_type threshold
    declared/test_metric_keys.py::test_an_answer_rests_on_its_passages_as_metric_type_says
metrics.rag: model
    declared/test_metric_keys.py::test_model_of_a_rag_metric_is_who_judges_it
metrics.rag: enabled fail_on_error
    declared/test_metric_keys.py::test_fail_on_error_and_enabled_decide_whether_a_broken_metric_counts
metrics.code: type grader threshold enabled name
    declared/test_metric_keys.py::test_a_grader_of_ones_own_decides_as_its_keys_say
metrics.code: fail_on_error
    declared/test_metric_keys.py::test_fail_on_error_and_enabled_decide_whether_a_broken_metric_counts
execution: cache_enabled cache_dir
    declared/test_test_case_keys.py::test_a_url_is_fetched_and_kept_as_the_file_says
execution: download_timeout
    declared/test_test_case_keys.py::test_download_timeout_gives_up_a_page_that_never_comes
execution: file_timeout
    declared/test_test_case_keys.py::test_file_timeout_gives_up_a_file_that_takes_too_long
execution: llm_timeout
    declared/test_test_case_keys.py::test_llm_timeout_gives_up_an_agent_that_never_answers
execution: parallel_test_cases
    declared/test_test_case_keys.py::test_as_many_tests_run_at_once_as_parallel_test_cases_says
execution: verbose quiet
    cli/test_cli_declared_agents.py::test_a_file_may_say_how_much_is_told
"""
"""By level and keys: where the effect is shown."""

MODEL = {"provider": "openai", "name": "m", "endpoint": "http://127.0.0.1:1/v1"}
CLAUDE = {"provider": "anthropic", "name": "m", "endpoint": "http://127.0.0.1:1"}
STORE = {"name": "t", "type": "vectorstore", "source": "faq.md", "embedding_model": "e"}
SERVER = {"name": "t", "type": "mcp", "transport": "http", "url": "http://127.0.0.1:1/mcp"}
TREE = {"name": "t", "type": "hierarchical_document", "source": "faq.md"}
UNSAMPLED = ("temperature", "max_tokens", "top_p", "api_version")


def _embedder(key: str, value: Any) -> dict[str, Any]:
    return {"tools": [STORE], "embedding_provider": {**MODEL, key: value}}


REFUSED: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("model", "auth_provider"): ({"model": {**MODEL, "auth_provider": "bedrock"}}, "auth_provider is not known here"),
    ("embedding_provider", "auth_provider"): (_embedder("auth_provider", "vertex"), "auth_provider is not known here"),
    **{("embedding_provider", key): (_embedder(key, 1), f"{key} has no meaning") for key in UNSAMPLED[:3]},
    ("embedding_provider", "api_version"): (_embedder("api_version", "1"), "api_version has no meaning"),
    ("evaluations.model", "auth_provider"): (
        {"evaluations": {"metrics": [{"type": "standard", "metric": "fluency"}],
                         "model": {**MODEL, "auth_provider": "bedrock"}}},
        "auth_provider is not known here",
    ),
    **{("claude", key): ({"model": CLAUDE, "claude": {key: 1}}, f"claude.{key} is not used here") for key in ELSEWHERE},
    **{("openai", key): ({"openai": {key: 1}}, f"openai.{key} is not used here") for key in ELSEWHERE},
    ("tools.vectorstore", "record_prefix"): ({"tools": [{**STORE, "record_prefix": "r"}]}, "record_prefix is not used"),
    ("tools.mcp", "load_tools"): ({"tools": [{**SERVER, "load_tools": False}]}, "load_tools is false"),
    ("tools.mcp", "load_prompts"): ({"tools": [{**SERVER, "load_prompts": True}]}, "load_prompts is true"),
    **{("tools.hierarchical_document", key): ({"tools": [{key: 1, **TREE}]}, "which Proctor does not run") for key in
       REFERENCE["tools.hierarchical_document"].split()},
}  # fmt: skip
"""By level and key: a file that has it, and what is said of it before anything runs."""

WARNED: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("agent", "observability"): ({"observability": {"enabled": True}}, "is kept, but has no effect"),
    ("agent", "deployment"): ({"deployment": {"port": 1}}, "is kept, but has no effect"),
    ("tools.mcp", "registry_name"): ({"tools": [{**SERVER, "registry_name": "r"}]}, "is kept, but has no effect"),
    ("tools.mcp", "description"): ({"tools": [{**SERVER, "description": "d"}]}, "the server describes its tools"),
    ("evaluations", "optimizer"): (
        {"evaluations": {"metrics": [{"type": "standard", "metric": "equality"}], "optimizer": {"seed": 1}}},
        "Proctor measures and does not optimise",
    ),
    ("metrics.rag", "include_reason"): (
        {"evaluations": {"metrics": [{"type": "rag", "metric_type": "faithfulness", "include_reason": False}]}},
        "the reason is always kept",
    ),
}
"""By level and key: a file that has it, and the warning that it changes nothing in a test."""


def shown() -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    lines = [line for line in SHOWN.splitlines() if line.strip()]
    for said, where in zip(lines[::2], lines[1::2], strict=True):
        level, _, keys = said.partition(": ")
        for key in keys.split():
            found.setdefault((level, key), []).append(where.strip())
    return found
