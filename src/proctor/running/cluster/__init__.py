"""Runs agents on several processes or machines, with Dask's `distributed`.

`connection.on_workers` takes a plan and returns the same plan with agents on workers; `run` calls it for `--workers`
and `--cluster`. `workers` is the part in the process of the run, `agent_host` the part on each worker. Only turns and
their replies are sent; timeouts, retries and scoring stay in the process of the run. Imported only by runs that use it.
"""
