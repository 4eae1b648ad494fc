"""The profiling child: `python child_of.py SPEC.json [PACKAGE]`.

PACKAGE is a folder with another build of `rlox`, such as that of another commit. It trains; what
looks on is the child beside this file, so that all commits are profiled alike.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(spec: str, package: str = "") -> int:
    """Run the spec, on the package if one is named."""
    here = Path(__file__).resolve().parent
    sys.path[:] = [
        of for of in sys.path if Path(of).resolve() != here
    ]  # its modules' names are ours
    if package:
        sys.path.insert(0, package)
        import rlox

        if Path(rlox.__file__ or "").parents[1] != Path(package):
            raise ImportError(f"rlox came from {rlox.__file__}, not from {package}")
    sys.path.append(str(here.parent))
    from workloads import child

    return child.main([spec])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
