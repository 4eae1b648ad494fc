"""Benchmarks of finding peaks, for commits of scikit-image."""
