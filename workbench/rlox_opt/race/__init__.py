"""Races: the project is measured beside other libraries (peers)."""
