"""Benchmarks of words, by asv."""
