"""The language model behind some evaluators."""
