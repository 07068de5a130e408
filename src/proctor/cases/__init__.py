"""What is asked: suites of cases, and one reader per file format."""
