"""Is the installed extension the one that asv is about to time?

Under asv, a build of another commit or with other features is refused when the benchmarks are
imported, so that it is never timed under a wrong name. asv puts the commit that it installed into
$ASV_COMMIT, and the matrix puts the features into $MATURIN_PEP517_ARGS.
"""

import argparse
import os
import shlex
import subprocess
import tomllib
from pathlib import Path


class OtherBuild(RuntimeError):
    """The extension is not the one that asv asked for."""


def refuse_other_builds():
    """Raises `OtherBuild`; does nothing outside asv."""
    commit = os.environ.get("ASV_COMMIT")
    if not commit:
        return
    import rlox

    info = rlox.build_info() if hasattr(rlox, "build_info") else {}
    if "commit" not in info:
        raise OtherBuild(
            f"asv asked for commit {commit}. The installed extension does not say what it was "
            "built from: it is from before rlox.build_info() named the commit, and is not timed. "
            "Start at a later commit"
        )
    remedy = f"Remove {os.environ.get('ASV_ENV_DIR', 'asv_bench/env')} and run asv again"
    if info["commit"] != commit:
        raise OtherBuild(
            f"asv asked for commit {commit}, and the installed extension was built from "
            f"{info['commit']}. {remedy}"
        )
    arguments = os.environ.get("MATURIN_PEP517_ARGS", "")
    asked = features(arguments, _toml(commit, "pyproject.toml"), _toml(commit, CORE))
    if asked != set(info["features"]):
        raise OtherBuild(
            f"asv asked for {_names(asked)} (MATURIN_PEP517_ARGS={arguments!r}), and the installed "
            f"extension was built with {_names(info['features'])}. {remedy}"
        )


CORE = "crates/rlox-core/Cargo.toml"


def features(arguments, pyproject, core):
    """The optimisations that maturin turns on: those in its arguments, otherwise those in
    pyproject.toml, with all that they imply."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-F", "--features", action="append")
    given = parser.parse_known_args(shlex.split(arguments))[0].features
    if given is None:
        given = pyproject["tool"]["maturin"].get("features", [])
    todo = " ".join(given).replace(",", " ").split()
    found = set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += core.get("features", {}).get(name, [])
    return {name for name in found if name.startswith("opt-") and name != "opt-all"}


def _toml(commit, path):
    """A file as it was at the commit."""
    shown = subprocess.run(
        ["git", "show", f"{commit}:{path}"],
        cwd=Path(__file__).parent,
        env={name: of for name, of in os.environ.items() if not name.startswith("GIT_")},
        capture_output=True,
        text=True,
        check=True,
    )
    return tomllib.loads(shown.stdout)


def _names(features):
    return ", ".join(sorted(features, key=lambda name: int(name[5:]))) or "no optimisation"
