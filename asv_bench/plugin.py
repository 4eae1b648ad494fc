"""asv's plug-in, named in asv.conf.json. With it `.venv/bin/asv` needs no preparation by hand."""

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
    """Called by asv before every command."""
    # asv looks for uv on PATH alone, and the locked uv lies beside this Python.
    here = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", os.defpath)])
    # The matrix alone must decide what is built: a value from the shell would be recorded under
    # "what ships".
    os.environ.pop("MATURIN_PEP517_ARGS", None)
    name_machine()
    publish_the_history()
    compare_side_by_side()


def name_machine() -> None:
    """Name this machine by its processor, as our records do, and describe it to asv once.

    asv would use the host's name, and only after `asv machine` was run by hand.
    """
    try:
        from rlox_opt.system.machine import machine, slug
    except ImportError:  # another asv, in a checkout that was never built
        return
    name = slug(machine())
    Machine.hardcoded_machine_name = name
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, {**Machine.get_defaults(), "machine": name})


def publish_the_history() -> None:
    """Make `asv publish` show the recordings of `rlox-opt record` beside asv's own, copy the pages
    of `rlox-opt publish`, and link to these from asv's title and from every commit."""
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
    """Make `asv continuous` call both commits in turn. Its own test treats the samples of a process
    as independent, and so flags benchmarks that did not change."""
    try:
        from asv_bench import side_by_side
    except ImportError:  # as above
        return
    side_by_side.install()
