"""Scripts for this Python, whose path may contain spaces, which a shebang line cannot express."""

import sys
from pathlib import Path


def script(path: Path, text: str) -> None:
    """Write one, in Python."""
    path.write_text(f"#!/bin/sh\n'''exec' \"{sys.executable}\" \"$0\" \"$@\"\n' '''\n{text}")
    path.chmod(0o755)
