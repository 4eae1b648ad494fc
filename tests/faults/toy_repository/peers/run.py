# Told by run_toy.py alone.
