"""Proctor examines AI agents."""
