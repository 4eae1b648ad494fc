"""Peers, beside which the project is measured."""
