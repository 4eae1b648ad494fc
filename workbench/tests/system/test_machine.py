"""A report tells the machine's kind and never its name."""

import getpass
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
import toy_projects

from rlox_opt.project.installed import Installed
from rlox_opt.system import machine


def test_machine_and_versions_hold_no_name_of_host_or_user() -> None:
    text = json.dumps([machine.machine(), toy_projects.PROJECT.installed.versions()])
    # Short names ("root", "box") may be part of an innocent word; they are looked for as words.
    words = {word.strip('",:[]{}') for word in text.split()}
    for name in {socket.gethostname(), os.uname().nodename, getpass.getuser()}:
        assert name not in words
    assert str(Path.home()) + "/" not in text


def test_machine_has_what_a_figure_depends_on() -> None:
    info = machine.machine()
    assert info["cores"] >= 1
    assert info["memory_gib"] > 0.1
    assert info["cpu"]
    assert info["kernel"].startswith("Linux ")


@pytest.mark.parametrize(
    ("cpu", "cores", "slug"),
    [
        ("Intel(R) Xeon(R) Processor @ 2.80GHz", 2, "intel-xeon-2.80ghz-2c"),
        ("Intel(R) Core(TM) i7-8550U CPU @ 1.80GHz", 8, "intel-core-i7-8550u-1.80ghz-8c"),
        ("AMD EPYC 7B13 64-Core Processor", 4, "amd-epyc-7b13-4c"),
        ("AMD EPYC, family 26 model 2", 2, "amd-epyc-family-26-model-2-2c"),
    ],
)
def test_the_folder_is_named_after_the_cpu(cpu: str, cores: int, slug: str) -> None:
    assert machine.slug({"cpu": cpu, "cores": cores}) == slug


@pytest.mark.parametrize(
    ("told", "cpu"),
    [
        ("AMD EPYC 7B13 64-Core Processor", "AMD EPYC 7B13 64-Core Processor"),
        ("AMD EPYC", "AMD EPYC, family 25 model 1"),
        (
            "Intel(R) Xeon(R) Processor @ 2.80GHz",
            "Intel(R) Xeon(R) Processor @ 2.80GHz, family 25 model 1",
        ),
    ],
)
def test_processors_of_one_general_name_are_told_apart(
    told: str, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: {told}\nstepping\t: 1\n"
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: text)
    assert machine.machine()["cpu"] == cpu


def test_a_processor_that_has_no_family_keeps_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "CPU implementer\t: 0x41\n")
    assert machine.machine()["cpu"]


def test_versions_of_absent_packages_are_none() -> None:
    found = Installed("toy", "_core", ("numpy", "no-such-package")).versions()
    assert found["numpy"]
    assert found["no-such-package"] is None


def test_commit_and_dirt_are_the_checkouts_own(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b.invalid"]
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    assert machine.commit(tmp_path) == (None, None)
    git("init", "-q")
    (tmp_path / "file").write_text("one")
    git("add", "file")
    git("commit", "-qm", "one")
    head, dirty = machine.commit(tmp_path)
    assert head
    assert len(head) == 40
    assert dirty is False
    (tmp_path / "file").write_text("two")
    assert machine.commit(tmp_path) == (head, True)
    inner = tmp_path / "site-packages"
    inner.mkdir()
    assert machine.commit(inner) == (None, None)
