"""The names that HoloDeck's format has in a suite."""

NAME = "holodeck"
EXTENSION = "x-holodeck"
"""The key of `Suite.extra` that keeps what describes the agent."""
