"""How good the answer was."""
