"""Criterion's benchmarks: by the names of asv's that call the same function."""

import re
import shlex
import sys
from pathlib import Path

import projects
import pytest
from projects import ROOT
from rlox_opt.harness.packages import Packages
from rlox_opt.harness.side_processes import Side, Suite
from rlox_opt.history import criterion

IDS = [
    *("gae/2048", "gae_batched/env_major/256x2048", "vtrace/10000", "token_kl/32x64"),
    *("group_advantages/256x16", "push/4", "sample/obs_dim=28224/32", "per/sample_256/100000"),
    *("per/update_256/100000", "env_step/CartPole-v1/64"),
]
# What criterion's program does as far as we ask it.
PROGRAM = """\
import json, os, pathlib, re, sys
ids = {ids}
if "--list" in sys.argv:
    print("".join(f"{{id}}: benchmark\\n" for id in [*ids, "per/sample_256/1000"]), end="")
    sys.exit()
for number, id in enumerate(ids):
    if id == "vtrace/10000":
        sys.exit("a benchmark that panics")
    if re.search(sys.argv[-1], id):
        new = pathlib.Path(os.environ["CRITERION_HOME"], id.replace("/", "_"), "new")
        new.mkdir(parents=True)
        (new / "benchmark.json").write_text(json.dumps({{"full_id": id}}))
        estimates = {{"median": {{"point_estimate": 1000.0 * (number + 1)}}}}
        (new / "estimates.json").write_text(json.dumps(estimates))
"""
DECLARED = projects.HERE.settings.build.criterion  # type: ignore[union-attr]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "criterion"
    own = path.with_suffix(".py")
    own.write_text(PROGRAM.format(ids=IDS))
    # Python itself may lie in a folder with a space, which no #! line can say.
    path.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(own)])} "$@"\n')
    path.chmod(0o755)
    return path


def test_each_has_a_benchmark_of_asv_with_the_same_function(program: Path) -> None:
    side = Side(ROOT, ("rlox",))
    with_rlox = Packages({"base": side}, Suite(ROOT / "asv_bench/benchmarks"), 120)
    names = criterion.ids(projects.HERE.builds, program)
    assert [*names.values()] == IDS
    assert names.keys() <= with_rlox.names("time").keys()


def test_every_group_of_criterion_has_a_name() -> None:
    source = (ROOT / "crates/rlox-bench/benches/data_plane.rs").read_text()
    groups = {*re.findall(r'benchmark_group\("(\w+)"\)', source)}
    assert groups == {id_.partition("/")[0] for id_ in IDS}


def test_what_asv_does_not_have_has_no_name() -> None:
    assert criterion.asv_name(DECLARED.names, "per/sample_256/1000") is None
    assert criterion.asv_name(DECLARED.names, "p5/sample_256/baseline/1000") is None


def test_medians_are_seconds_and_a_panic_keeps_those_before_it(program: Path) -> None:
    names = criterion.ids(projects.HERE.builds, program)
    found = criterion.times(program, names)
    assert found == {
        "data_plane.Gae.time_gae(2048)": pytest.approx(1e-6),
        "data_plane.GaeBatched.time_gae_batched((256, 2048), 'env_major')": pytest.approx(2e-6),
    }
    only = {name: id_ for name, id_ in names.items() if id_ == "gae/2048"}
    assert criterion.times(program, only).keys() == only.keys()
    assert criterion.times(program, {}) == {}
