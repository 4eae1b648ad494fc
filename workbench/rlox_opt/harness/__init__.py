"""Timing and counting, in processes of their own."""
