"""The project that is measured: its builds, its cards, what its machine can tell apart."""
