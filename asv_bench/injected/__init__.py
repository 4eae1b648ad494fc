"""Injected regressions: are slowdowns of known size found, and is nothing else flagged?"""
