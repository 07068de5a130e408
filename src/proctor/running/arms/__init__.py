"""Runs arms in their own processes: versions of an agent from git, and arms with their own environment.

`processes.in_processes` takes a plan and returns the same plan with agents in processes, one process per arm;
`run` calls it if an arm needs one. `worktrees` checks out the version of an arm and removes it again, `environments`
builds its virtual environment, and `host` is the program that runs in the process. Sessions, lost time and lost
processes are handled as for workers (`running/cluster/workers.py`). `interleaving` puts the trials of arms in order.
"""
