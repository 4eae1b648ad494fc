"""Whatever goes wrong, the command line ends with a line and an exit code, not with a traceback."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import toy_projects
from command_line import rlox_opt, started

from rlox_opt.cli.main import VERBS

PLANTED = """
import rlox_opt.cli.list as planted
def run(_):
    {body}
planted.run = run
"""
FAULTS = {
    "ValueError: of my own": "raise ValueError('of my own')",
    "RecursionError": "return run(_)",
    "MemoryError": "raise MemoryError",
    "ExceptionGroup": "raise ExceptionGroup('two', [ValueError(1), OSError()])",
    "OSError: nobody knows where": "raise OSError('nobody knows where')",
}
if sys.version_info < (3, 11):
    del FAULTS["ExceptionGroup"]


def planted(body: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What `rlox-opt list` says, which ends with 3, once it does `body`."""

    def run(arguments: object) -> None:
        exec(body, {"run": run, "_": arguments})

    monkeypatch.setattr("rlox_opt.cli.list.run", run)
    done = rlox_opt("list")
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of this process."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_of_our_own_is_a_line_and_a_file_with_the_traceback(
    fault: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = planted(FAULTS[fault].replace("return run(_)", "run(_)"), monkeypatch)
    assert f"rlox-opt list: an error of rlox-opt itself, {fault}" in said
    (kept,) = temporary.iterdir()
    assert f"the traceback is in {kept}; report it" in said
    text = kept.read_text()
    assert "['rlox-opt', 'list']" in text
    assert "'version': '0." in text
    assert text.rstrip().splitlines()[-1].strip(" |+-").startswith(fault.split(":")[0]) or (
        fault == "ExceptionGroup" and "ExceptionGroup: two" in text
    )


def test_where_no_file_can_be_written_the_line_alone_is_told() -> None:
    nothing = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    body = PLANTED.format(body="raise ValueError('of my own')")
    done = started("list", first=nothing + body)
    assert done.returncode == 3
    assert (
        done.stderr
        == "rlox-opt list: an error of rlox-opt itself, ValueError: of my own; report it\n"
    )


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ("OSError(28, 'No space left on device', '/a/b')", "cannot write /a/b: No space left on"),
        ("OSError(30, 'Read-only file system')", "cannot write: Read-only file system"),
        ("PermissionError(13, 'Permission denied', '/a/b')", "cannot use /a/b: Permission denied"),
        ("FileNotFoundError(2, 'No such file or directory', 'git')", "cannot use git: No such"),
        ("shutil.Error([('/a', '/b', 'No space left on device')])", "cannot write /b: No space"),
    ],
)
def test_what_the_system_refuses_is_told_with_its_path_and_leaves_no_file(
    error: str, line: str, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = planted(f"import shutil; raise {error}", monkeypatch)
    assert said.startswith(f"rlox-opt list: {line}")
    assert not list(temporary.iterdir())


# Moments of the start: when this module is about to be imported, Ctrl-C comes.
MOMENTS = (
    "toy",
    "toy._core",
    "msgspec",
    "rlox_opt.project.project",
    "rlox_opt.cli.list",
    "rich.console",
)
AT = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
class Ctrl_C:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Ctrl_C())
"""


@pytest.mark.parametrize("name", MOMENTS)
def test_ctrl_c_at_the_start_ends_it_without_a_word(name: str) -> None:
    done = started("list", first=AT.format(name=name))
    assert (done.returncode, done.stderr) == (130, "")


LATE = """
import atexit, os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
"""


def test_ctrl_c_after_the_end_changes_nothing() -> None:
    done = started("list", "--json", first=LATE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("]\n")


IN_CLEANUP = PLANTED.format(
    body="""
    import os, signal, time
    class Holds:
        def __del__(self):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0)
    try:
        held = Holds()
        del held
        time.sleep(5)
    finally:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    """
)


def test_ctrl_c_in_a_finalizer_and_again_in_the_cleanup_is_an_interruption() -> None:
    now = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    done = started("list", first=now + IN_CLEANUP)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize(("closed", "code"), [((1,), 3), ((0, 2), 0), ((0, 1, 2), 3)])
def test_a_closed_stdout_is_told_and_the_other_streams_are_not_missed(
    closed: tuple[int, ...], code: int, tmp_path: Path
) -> None:
    # Closed before Python starts, so that it has no such stream.
    shell = "exec " + " ".join(f"{number}>&-" for number in closed)
    temporary = os.environ | {"TMPDIR": str(tmp_path)}
    done = started("list", under=["sh", "-c", f'{shell}; exec "$0" "$@"'], env=temporary)
    assert done.returncode == code
    line = "rlox-opt list: cannot write standard output: Bad file descriptor; what it should hold"
    assert done.stderr.startswith(line if closed == (1,) else "")
    assert done.stderr.count("\n") == (closed == (1,))


@pytest.mark.parametrize(
    "words",
    [
        ["profile", "diff", "x" * 5000, "y" * 5000],
        ["profile", "x" * 5000 + ".py"],
        ["profile", "ppo", "--out", "x" * 5000],
        ["regressions", "--history", "x" * 300],
        ["diff", "x" * 100_000],
        ["bisect", "x" * 100_000, "HEAD", "--bench", "x" * 100_000],
        ["diff", "HEAD", "--bench", "(" * 100_000],
        ["diff", "HEAD", "--bench", "a{99999999999999}"],
        ["show", "p\0five"],
        ["show", "p\udcff"],
        ["show", "two\nlines"],
        ["peers", "primitives", "--case", "(" * 100_000],
        ["regressions", "--acknowledged", "/dev/zero"],
        ["regressions", "--acknowledged", "/proc/self/mem"],
        ["profile", "diff", "/dev/zero", "/dev/null"],
        ["profile", "/dev/zero"],
    ],
    ids=lambda words: " ".join(word[:20] for word in words).encode("ascii", "replace").decode(),
)
def test_what_no_name_or_pattern_can_be_is_asked_wrongly(words: list[str]) -> None:
    done = rlox_opt(*words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 1500


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    done = rlox_opt("regressions", "--acknowledged", tmp_path / "fifo")
    assert done.returncode == 2
    assert "fifo: is no regular file" in done.stderr


@pytest.mark.parametrize("text", ["", "[]", "{", "\xff", "[" * 100_000, "1" * 5000, '{"sps": "x"}'])
def test_a_broken_report_is_named_and_what_is_wrong(text: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_bytes(text.encode("latin-1"))
    done = rlox_opt("profile", "diff", tmp_path / "a", tmp_path / "b")
    assert done.returncode == 2
    assert re.match(rf"rlox-opt profile diff: {tmp_path}/a(/report.json)?: ", done.stderr)
    assert done.stderr.count("\n") == 1


def test_letters_that_a_stream_cannot_say_are_no_fault() -> None:
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "COLUMNS": "1"}
    for words in (["list"], ["cmp", "--help"], ["show", "\udcff"]):
        done = started(*words, env=ascii_only)
        assert done.returncode == (2 if "\udcff" in words else 0), done.stderr
        assert "Traceback" not in done.stderr
    assert done.stderr.isascii()


def test_a_folder_that_is_gone_and_a_home_that_is_none_are_no_fault(tmp_path: Path) -> None:
    gone = f"import os; os.chdir({str(tmp_path)!r}); os.rmdir({str(tmp_path)!r})\n"
    poor = {"PATH": os.environ["PATH"]}
    done = started("list", first=gone, env=poor)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1  # that there are no cards
    tmp_path.mkdir()
    done = started("profile", "ppo", "--out", "x", first=gone, env=poor)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1  # that no project names "ppo"
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words", [["diff", "HEAD"], ["record"], ["bisect", "HEAD~1", "HEAD", "--bench", "x"]]
)
def test_without_git_a_line_is_told(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = rlox_opt(*words)
    assert done.returncode in (2, 3)
    assert "git" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_broken_installation_is_told_in_a_line() -> None:
    first = "sys.modules['toy._core'] = None"
    done = started("list", first=first)
    assert done.returncode == 2
    assert "toy._core, which is measured, cannot be imported" in done.stderr
    assert done.stderr.count("\n") == 1


NEED_RICH = (
    "list", "show p5", "cmp p5 --no-record", "test p5", "diff HEAD", "record", "publish",
    "profile examples.py",
)  # fmt: skip
WITHOUT_RICH = """
import json, sys
sys.modules["rich"] = None
from command_line import rlox_opt
_, script, *asked = sys.argv
told = {}
for words in asked:
    of = rlox_opt(*(script if word == "examples.py" else word for word in words.split()))
    told[words] = of.returncode, of.stdout, of.stderr
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def without_rich(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str, str]]:
    """How each verb ends in a process that has no rich, and what it says on its two streams."""
    script = tmp_path_factory.mktemp("without_rich") / "examples.py"
    script.write_text("raise SystemExit('it is not to be started')\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RICH, str(script), *NEED_RICH],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, cwd=toy_projects.PROJECT.root,
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said: dict[str, tuple[int, str, str]] = json.loads(done.stdout)
    return said


@pytest.mark.parametrize("words", NEED_RICH)
def test_without_rich_each_verb_names_the_remedy_before_any_work(
    words: str, without_rich: dict[str, tuple[int, str, str]]
) -> None:
    code, out, err = without_rich[words]
    assert (code, out) == (2, "")
    assert re.fullmatch(r"rlox-opt [a-z -]+: rich is not installed: pip install rlox-opt.*\n", err)


def test_a_reader_that_has_had_enough_hears_nothing() -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    done = started("list", stdout=theirs)
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, "")
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN, "as Python starts"


@pytest.mark.parametrize("missing", ["gymnasium", "torch.nn"])
def test_what_a_plug_in_lacks_is_named_with_what_brings_it(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(_: object) -> None:
        raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr("rlox_opt.cli.list.run", run)
    done = rlox_opt("list")
    assert done.returncode == 2
    name = missing.partition(".")[0]
    assert done.stderr == f"rlox-opt list: {name} is not installed: pip install {name}\n"


def test_help_imports_nothing_heavy() -> None:
    heavy = ("numpy", "jinja2", "rich", "asv_runner")
    done = started("--help", first=f"sys.modules.update(dict.fromkeys({heavy}))")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_verb_imports_neither_the_others_nor_what_few_of_them_need() -> None:
    verbs = (verb.replace("-", "_") for verb in VERBS if verb != "diff")
    others = (*(f"rlox_opt.cli.{verb}" for verb in verbs), "elftools.elf.elffile", "yaml")
    done = started("diff", "--help", first=f"sys.modules.update(dict.fromkeys({others}))")
    assert (done.returncode, done.stderr) == (0, "")
