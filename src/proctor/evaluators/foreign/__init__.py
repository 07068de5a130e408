"""Evaluators written for other tools."""
