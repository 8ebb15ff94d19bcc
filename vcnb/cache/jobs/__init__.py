"""Cache jobs as values: what a job is, its states, and the table of its transitions. No I/O."""
