"""HoloDeck's `agent.yaml` and its configuration files."""
