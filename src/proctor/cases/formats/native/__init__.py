"""Proctor's own file format."""
