"""What people add to a run: grades, accepted expectations, labelled rows."""
