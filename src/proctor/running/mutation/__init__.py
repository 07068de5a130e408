"""Tests of suites: mutants of good answers, which the suite's own evaluators must notice."""
