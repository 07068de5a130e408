"""Agents that a file describes instead of code: a model, instructions, tools, the shape of the answer."""
