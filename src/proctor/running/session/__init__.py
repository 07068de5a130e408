"""One run shared by all tests of a pytest session."""
