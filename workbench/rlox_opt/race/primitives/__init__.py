"""Primitives side by side: `rlox-opt peers primitives` and `rlox-opt peers growth`.

`cases` says what is timed and by which engines, `engines` runs a process for each engine, `checks`
compares their results with plain NumPy, `contest` times them in turn, `results` computes figures.
"""
