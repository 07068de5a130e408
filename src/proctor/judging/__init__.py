"""The language model behind some evaluators: one `Judge`, whoever answers."""
