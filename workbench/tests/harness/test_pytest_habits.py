"""What a side of a suite of pytest does with the suite's settings, folders and threads."""

import json
import os
from pathlib import Path

import pytest
from pytest_sides import asked, prepared

DESELECTS = """
def pytest_addoption(parser):
    parser.addoption("--timed", action="store_true")

def pytest_collection_modifyitems(config, items):
    if not config.getoption("--timed"):
        config.hook.pytest_deselected(items=[*items])
        items.clear()
"""


@pytest.mark.parametrize("options", ["", "--timed"])
def test_benchmarks_that_a_conftest_deselects_are_told_and_an_option_selects_them(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", options)
    suite = "def test_one(benchmark): ...\ndef test_two(benchmark): ...\ndef test_other(): ...\n"
    with asked(tmp_path, suite, more={"tests/conftest.py": DESELECTS}) as ask:
        (listed,) = ask("all", "")
    assert len(listed["benchmarks"]) == (2 if options else 0)
    told = "deselect all 2 benchmarks; an option may select them: PYTEST_ADDOPTS='--…' rlox-opt"
    assert (told in listed["broken"].get("the suite", "")) == (not options), listed


@pytest.mark.parametrize("strict", ["addopts = --strict-config", "strict = true"])
def test_a_setting_of_a_plug_in_that_is_lacking_stops_nothing(strict: str, tmp_path: Path) -> None:
    strict = strict if "addopts" in strict else f"{strict}\naddopts = -W error"
    table = f"[pytest]\n{strict}\nfilterwarnings = error\nof_another_plug_in = 1\n"
    suite = "def test_it(benchmark):\n    benchmark(int)\n"
    with asked(tmp_path, suite, more={"pytest.ini": table}) as ask:
        assert prepared(ask, "test_it") == 0


FOLDER = """
import os

def test_in_its_folder(benchmark, tmp_path):
    os.getcwd()
    os.chdir(tmp_path)
    benchmark(lambda: open({told!r}, "w").write(f"{tmp_path}"))
"""


def test_the_folder_of_a_test_goes_with_the_test_even_if_it_ends_there(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with asked(tmp_path, FOLDER.replace("{told!r}", repr(str(told)))) as ask:
        for _ in range(2):
            assert prepared(ask, "test_in_its_folder") == 0
            folder = Path(told.read_text())
            assert folder.is_dir()
            assert ask("forget", 1) is None
            assert not folder.exists()


THREAD = """
import os, threading

thread = threading.Thread(target=threading.Event().wait, daemon=True)
thread.start()

def test_beside_a_thread(benchmark):
    def cores():
        with open({told!r}, "w") as told:
            told.write(f"{sorted(os.sched_getaffinity(thread.native_id))}")
    benchmark(cores)
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes are not moved here")
def test_the_threads_of_a_suite_are_moved_to_the_core_and_back(tmp_path: Path) -> None:
    told, cores = tmp_path / "told", sorted(os.sched_getaffinity(0))
    with asked(tmp_path, THREAD.replace("{told!r}", repr(str(told)))) as ask:
        assert prepared(ask, "test_beside_a_thread") == 0
        for core, there in ((cores[0], cores[:1]), (None, cores)):
            ask("pin", core)
            ask("time", 0, 1, 0)
            assert json.loads(told.read_text()) == there
