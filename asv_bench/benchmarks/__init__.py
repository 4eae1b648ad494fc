"""Benchmarks that asv runs commit after commit."""
