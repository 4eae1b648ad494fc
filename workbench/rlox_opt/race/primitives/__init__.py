"""Primitives side by side: `rlox-opt peers primitives` and `rlox-opt peers growth`.

`cases` says what is timed and by whom, `engines` runs one process for each of them, `checks` holds
their results to plain NumPy, `contest` times them in turn, `results` says what it comes to.
"""
