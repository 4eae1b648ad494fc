"""Benchmarks of interpolation, for commits of xarray."""
