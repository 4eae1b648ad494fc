"""Which detector of level changes is the best? All of them on the same synthetic histories."""
