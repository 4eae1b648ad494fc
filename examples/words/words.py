"""Counts the words of a text."""


def count(text):
    """How often each word of a text occurs: a dict."""
    found = {}
    for word in text.lower().split():
        found[word] = found.get(word, 0) + 1
    return found
