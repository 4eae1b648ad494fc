"""Runs of several processes: recorded, replayed, and put on one axis."""
