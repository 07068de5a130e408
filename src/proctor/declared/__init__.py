"""Agents that a file describes and nobody has programmed: a model, instructions, tools, the shape of the answer."""
