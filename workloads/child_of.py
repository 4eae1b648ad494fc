"""The profiling child over another build of the package: `python -P child_of.py PACKAGE SPEC.json`.

PACKAGE is a folder with a built `rlox`, such as that of another commit. It trains; what looks on is
the child beside this file, so that all commits are profiled alike.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(package: str, spec: str) -> int:
    """Run the spec on the package."""
    sys.path.insert(0, package)
    import rlox

    if Path(rlox.__file__ or "").parents[1] != Path(package):
        raise ImportError(f"rlox came from {rlox.__file__}, not from {package}")
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from workloads import child

    return child.main([spec])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
