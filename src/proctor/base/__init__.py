"""Basics that every other package may use; they import no other package of Proctor.

- Data: `json_data`, `dataclass_json`, `selectors`, `regexes`, `fingerprints`.
- Files: `source` and `yaml_source` read JSON and YAML; `documents` and `positions` report problems with file and line.
- Code: `references` loads `file.py:name`; `lazy_imports`, `python_source`.
- Secrets: `masking`, `secret_patterns`, `secret_commands`, `secret_names`, `secret_shapes`; `environment` reads `.env`.
- Processes: `threads`, `event_loops`, `clock`, `locks`, `process_tree`, and `guard`, the process that watches a run.
- `open_checks`: checks of a running test that have no result.
- `errors`, `transient` (what to retry), `deprecation`, `git`, `atomic_write`, `own_files`.
"""
