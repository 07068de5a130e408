"""The documented interfaces of other tools, by their own names, on Proctor's engine: one module for each."""
