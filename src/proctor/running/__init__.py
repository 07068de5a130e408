"""The engine: takes suites, agents and options, and returns stored trials, a run and its verdict.

The modules, in the order in which a trial goes through them: `settings` (limits and judge), `plan` (what will run;
frozen), `run` (a new run, a resumed one, or one with stored answers), `execution` (tasks that run trials in parallel),
`trial` (one trial), `conversation` (one session with the agent), `failures` (agent failure or error), `timeouts`,
`evaluables` and `scoring`, `trial_writer` (store, then report). `isolation` and `cluster/` replace the agents of a plan
by agents in other processes; nothing else knows where an agent runs.

Commands, the pytest plugin and `proctor.api` call `run`. `assertions/`, `review/`, `proctor.mutation` and
`proctor.calibration` call the functions above, so there is only one engine.
"""
