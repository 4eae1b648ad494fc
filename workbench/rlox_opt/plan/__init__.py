"""Planned optimisations: measured, tested, and begun."""
