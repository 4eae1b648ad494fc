"""Benchmarks of making polygons, for commits of shapely."""
