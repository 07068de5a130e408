"""What is kept: outcomes, runs, statistics, the store and the verdict."""
