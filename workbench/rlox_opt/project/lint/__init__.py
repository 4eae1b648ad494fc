"""What is wrong with a suite of benchmarks, by its source and by running it."""
