"""What was measured and kept: recordings of commits, records of optimisations, and claims."""
