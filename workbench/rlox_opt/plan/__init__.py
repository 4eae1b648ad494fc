"""Planned optimisations: how they are measured, tested and begun."""
