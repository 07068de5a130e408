"""What every other package may use, and what imports no other package of Proctor.

Errors, JSON, documents with positions, references to code, fingerprints, masking of secrets, locks, threads, event
loops, and the guard process.
"""
