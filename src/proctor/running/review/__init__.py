"""What people decide about stored answers: grades for pending scores, approved expectations, labels for calibration.

Input is a stored run and rows of decisions, from a terminal, a file or the viewer. Output is the updated run
(`grading`), the suite with new expectations (`approving`) or labels in the store (`labelling`). Called by the commands
`grade` and `approve` and by the viewer.
"""
