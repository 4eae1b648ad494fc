"""asv's plug-in, named in asv.conf.json: `.venv/bin/asv` needs no preparation by hand."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from asv.machine import Machine, MachineCollection
from asv.util import UserError


def setup() -> None:
    """asv calls this before every command."""
    # asv looks for uv on PATH alone; the locked one lies beside this Python.
    here = str(Path(sys.executable).parent)
    os.environ["PATH"] = os.pathsep.join([here, os.environ.get("PATH", os.defpath)])
    # The matrix alone says what is built: a value inherited from the shell would be filed under
    # "what ships".
    os.environ.pop("MATURIN_PEP517_ARGS", None)
    name_machine()


def name_machine() -> None:
    """Name this machine as our records do, by its processor, and tell asv of it once.

    asv names it after the host, and only when `asv machine` was run by hand.
    """
    try:
        from rlox.profiling.machine import machine, slug
    except ImportError:  # an asv from elsewhere, in a checkout that was never built
        return
    name = slug(machine())
    Machine.hardcoded_machine_name = name
    try:
        MachineCollection.load(name)
    except UserError:
        MachineCollection.save(name, {**Machine.get_defaults(), "machine": name})
