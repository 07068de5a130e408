"""Users that a model plays."""
