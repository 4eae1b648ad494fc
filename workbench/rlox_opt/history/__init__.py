"""What was measured, kept: the records of optimisations, run after run."""
