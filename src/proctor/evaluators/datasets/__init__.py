"""Datasets that Python and the command line fill: entries as evaluators see them."""
