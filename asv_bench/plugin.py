"""asv's plug-in, named in asv.conf.json: `.venv/bin/asv` needs no preparation by hand."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from asv.commands.publish import Publish
from asv.machine import Machine, MachineCollection
from asv.util import UserError

PAGES = Path(__file__).with_name("pages")


def setup() -> None:
    """asv calls this before every command."""
    # asv looks for uv on PATH alone; the locked one lies beside this Python.
    here = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", os.defpath)])
    # The matrix alone says what is built: a value inherited from the shell would be filed under
    # "what ships".
    os.environ.pop("MATURIN_PEP517_ARGS", None)
    name_machine()
    publish_the_history()
    compare_side_by_side()


def name_machine() -> None:
    """Name this machine as our records do, by its processor, and tell asv of it once.

    asv names it after the host, and only when `asv machine` was run by hand.
    """
    try:
        from rlox_opt.system.machine import machine, slug
    except ImportError:  # an asv from elsewhere, in a checkout that was never built
        return
    name = slug(machine())
    Machine.hardcoded_machine_name = name
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, {**Machine.get_defaults(), "machine": name})


def publish_the_history() -> None:
    """Have `asv publish` show what `rlox-opt record` kept beside what `asv run` did, take in the
    pages that `rlox-opt publish` made, and lead to them from its title and from every commit."""
    run = Publish.run

    def with_history(conf: Any, **options: Any) -> Any:
        try:
            from rlox_opt.history import store

            from asv_bench import from_history
            from asv_bench.project import PROJECT
        except ImportError:  # as above
            return run(conf=conf, **options)
        from_history.write(
            (entry for _, entry in store.entries(PROJECT.history)), Path(conf.results_dir)
        )
        if not PAGES.is_dir():
            return run(conf=conf, **options)
        conf.project_url, conf.show_commit_url = "history/index.html", "history/commits.html#"
        done = run(conf=conf, **options)
        shutil.copytree(PAGES, Path(conf.html_dir) / "history")  # asv has emptied the folder
        return done

    Publish.run = with_history


def compare_side_by_side() -> None:
    """Have `asv continuous` call both commits in turn. Its own test takes the samples of a process
    for independent, and so flags what nothing changed."""
    try:
        from asv_bench import side_by_side
    except ImportError:  # as above
        return
    side_by_side.install()
