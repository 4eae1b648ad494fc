"""Counts words, in phases that a profile shows by their names.

rlox-opt profile examples/count_words.py
"""

import random
from collections import Counter

from rlox.timing import span

WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog")


@span("make the text")
def make(n: int) -> str:
    """A text of so many words, the same in each run."""
    draw = random.Random(0)
    return " ".join(draw.choice(WORDS) for _ in range(n))


@span("count")
def count(text: str) -> Counter[str]:
    """How often each word occurs."""
    found: Counter[str] = Counter()
    for word in text.split():
        found[word] += 1
    return found


def main() -> None:
    text = make(400_000)
    for _ in range(5):
        found = count(text)
    with span("sort"):
        ranked = sorted(found, key=lambda word: -found[word])
    print("most frequent:", ranked[0])


if __name__ == "__main__":
    main()
