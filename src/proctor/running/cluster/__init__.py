"""Runs on several processes or machines, through Dask's `distributed`; imported only by runs that ask for it."""
