"""The project that is measured: its builds, its cards, and what can be measured on its machine."""
