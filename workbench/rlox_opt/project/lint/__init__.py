"""What is wrong with a suite of benchmarks: what its source tells, and what shows when it runs."""
