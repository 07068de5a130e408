"""The agents under test: one adapter for each kind of agent."""
