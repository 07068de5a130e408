"""Basics that every other package may use; they import no other package of Proctor.

Errors, JSON, documents with positions, references to code, fingerprints, masking of secrets, locks, threads, event
loops, and the guard process.
"""
