"""How long `words.count` takes."""

import words


class Count:
    params = [100, 10_000]
    param_names = ["words"]

    def setup(self, n):
        self.text = "the quick brown fox " * (n // 4)

    def time_count(self, n):
        words.count(self.text)
