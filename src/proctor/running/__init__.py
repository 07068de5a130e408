"""The engine: suites, one agent per suite and options in; stored trials, a run and its verdict out.

The modules, in the order in which a trial goes through them: `settings` (which limits and which judge hold), `plan`
(what will run; frozen), `run` (a new run, a resumed one, stored answers), `execution` (tasks take trials), `trial`
(one of them), `conversation` (one session with the agent), `failures` (whose failure it is), `timeouts`, `evaluables`
and `scoring`, `trial_writer` (store, then report). `isolation` and `cluster/` replace the agents of a plan by agents
that live in other processes; nothing else knows where an agent runs.

Commands, the pytest plugin and `proctor.api` call `run`. `assertions/`, `review/`, `proctor.mutation` and
`proctor.calibration` call the functions above and are never a second engine.
"""
