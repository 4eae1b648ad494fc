"""Runs of several processes: their recording, their replay, and their common time axis."""
