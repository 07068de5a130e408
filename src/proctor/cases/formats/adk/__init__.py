"""ADK's EvalSets and their `test_config.json`."""
