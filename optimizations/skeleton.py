"""The parts of a new optimisation: files made from templates, and lines put into existing ones.

Everything is worked out before anything is written: `Tree.plan` gives the new text of every file,
and raises `SkeletonError` where one cannot be made.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from rlox_opt.system import files, git

TEMPLATES = Path(__file__).parent / "templates"
CORE, BENCH = "crates/rlox-core", "crates/rlox-bench"
EXTENSIONS = ("crates/rlox-python", "crates/rlox-laboratory")
SWITCHBOARD, WIRING = f"{CORE}/src/switchboard.rs", f"{CORE}/src/wiring.rs"
KINDS = ("function", "type")

_LONGEST_NAME = 30
# Words that tell nothing in a name.
_FILLERS = """
    a an and are as at be between by for from if in instead into is it its not of on one only or
    over so still than that the their they to when where which while with
"""
# Rust's keywords, and names that a pair's file uses itself.
_RESERVED = """
    abstract as async await become box break const continue crate do dyn else enum extern false
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self
    static struct super trait true try type typeof union unsafe unsized use virtual where while
    yield pair twin workload draw arm number rc baseline optimized run tests
"""


class SkeletonError(ValueError):
    """The parts cannot be written; the message is one line that says why and what would do."""


@dataclass(frozen=True)
class New:
    """An optimisation that is to be: `id` is "p25", `parent` the core's module for its seam."""

    id: str
    title: str
    name: str
    kind: str
    layer: str
    parent: str

    @property
    def address(self) -> str:
        """Where the seam lies."""
        path = f"{CORE}/src/{self.parent}/{self.name}"
        return path if self.kind == "function" else f"{path}.rs"

    @property
    def stem(self) -> str:
        """Of the files named after it: "p25_name"."""
        return f"p{int(self.id[1:]):02d}_{self.name}"

    @property
    def pair(self) -> str:
        """The file of its pair."""
        return f"{BENCH}/src/pairs/{self.stem}.rs"

    @property
    def card(self) -> str:
        """The file of its card."""
        return f"optimizations/{self.stem}.toml"

    @property
    def type_name(self) -> str:
        """The name in camel case."""
        return "".join(word.capitalize() for word in self.name.split("_"))


def name_from(title: str) -> str:
    """A module's name from the first telling words of a title."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.lower().replace("'s ", " "))
    telling = [word for word in words if word not in _FILLERS.split()]
    return "_".join(telling[:3])[:_LONGEST_NAME].strip("_")


def check_name(name: str, tree: Path) -> None:
    """Raise `SkeletonError` unless a module can be called so."""
    if not name:
        raise SkeletonError("--name: cannot be made from this title; give one")
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or len(name) > _LONGEST_NAME:
        raise SkeletonError(
            f"--name {name}: use small letters, digits and underscores, a letter first, at most "
            f"{_LONGEST_NAME} of them"
        )
    if name in _RESERVED.split():
        raise SkeletonError(
            f"--name {name}: means something else in Rust or in a pair; use another"
        )
    camel = "".join(word.capitalize() for word in name.split("_"))
    for path in (SWITCHBOARD, WIRING):
        if re.search(rf"\b({name}|{camel})\b", _read(tree, path)):
            raise SkeletonError(f"--name {name}: is taken in {path}; use another")


def parents(tree: Path) -> list[str]:
    """The core's modules that a seam may lie in: they have a trait of what varies in them."""
    modules = (tree / CORE / "src").glob("*/mod.rs")
    varied = (
        path for path in modules if re.search(r"^pub trait \w+Wiring", path.read_text(), re.M)
    )
    return sorted(path.parent.name for path in varied)


def plan(new: New, tree: Path) -> dict[str, str]:
    """The text of every file, by its path in `tree`: the new ones first."""
    made = {path: _filled(template, new) for path, template in _templates(new)}
    for path in made:
        if (tree / path).exists():
            raise SkeletonError(f"{path}: is there already; use another --name")
    seam = tree / new.address
    if seam.with_suffix("").exists() or seam.with_suffix(".rs").exists():
        raise SkeletonError(f"{new.address}: is there already; use another --name")
    texts = made | {path: _edited(path, inserts, tree) for path, inserts in _inserts(new).items()}
    return {path: _formatted(path, text, tree) for path, text in texts.items()}


def write(texts: dict[str, str], tree: Path) -> None:
    """Write the files of a plan; where one cannot be written, none is left changed. Raises
    NotWrittenError."""
    folders = {(tree / path).parent for path in texts}
    made = [folder for folder in folders if not folder.exists()]
    try:
        with contextlib.ExitStack() as all_of_them:
            for path, text in texts.items():
                file = all_of_them.enter_context(files.writing(tree / path))
                file.write(text.encode())
                file.flush()  # what there is no room for fails before any file has changed
    except files.NotWrittenError:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def _templates(new: New) -> list[tuple[str, str]]:
    """The new files, each with its template."""
    if new.kind == "function":
        twins = ("mod.rs", "baseline.rs", "optimized.rs")
        seam = [(f"{new.address}/{file}", f"function/{file}") for file in twins]
    else:
        seam = [(new.address, "type/seam.rs")]
    return [*seam, (new.pair, f"{new.kind}/pair.rs"), (new.card, "card.toml")]


def _filled(template: str, new: New) -> str:
    text = Template((TEMPLATES / template).read_text(encoding="utf-8"))
    return text.substitute(
        id=new.id,
        ID=new.id.upper(),
        title=new.title.rstrip("."),
        quoted=json.dumps(new.title, ensure_ascii=False),
        name=new.name,
        Name=new.type_name,
        kind=new.kind,
        layer=new.layer,
        parent=new.parent,
        address=new.address,
        pair=new.pair,
    )


@dataclass(frozen=True)
class _Insert:
    """Lines that go after (or before) the last match of `anchor`; `what` names it to people."""

    anchor: str
    what: str
    lines: str
    before: bool = False


def _inserts(new: New) -> dict[str, list[_Insert]]:
    """What goes into which existing file."""
    id_, upper, name, type_ = new.id, new.id.upper(), new.name, new.type_name
    feature = r"^opt-p\d+ = \[.*\]\n"
    forward = _Insert(feature, "feature opt-pN", f'opt-{id_} = ["rlox-core/opt-{id_}"]\n')
    pair_type = type_ if new.kind == "function" else f"{type_}Pair"
    return {
        f"{CORE}/src/{new.parent}/mod.rs": [
            _Insert(r"^pub mod \w+;\n", "line `pub mod …;`", f"pub mod {name};\n"),
            _Insert(
                r"^pub trait \w+Wiring: [^{]*\{\n(?:    .*\n)+",
                "trait of what varies in it",
                f"    /// {upper}: {new.title.rstrip('.')}.\n"
                + (
                    f"    const {upper}: bool;\n"
                    if new.kind == "function"
                    else f"    type {type_}: {name}::{type_};\n"
                ),
            ),
        ],
        WIRING: _in_wiring(new),
        SWITCHBOARD: _in_switchboard(new),
        f"{CORE}/Cargo.toml": [
            _Insert(feature, "feature opt-pN", f"opt-{id_} = []\n"),
            _Insert(
                r'^opt-all = \[\n(?:    "opt-p\d+",\n)+', "opt-pN in opt-all", f'    "opt-{id_}",\n'
            ),
        ],
        f"{BENCH}/Cargo.toml": [forward],
        **{f"{extension}/Cargo.toml": [forward] for extension in EXTENSIONS},
        f"{BENCH}/src/pairs/mod.rs": [
            _Insert(r"^mod p\d+_\w+;\n", "line `mod pNN_…;`", f"mod {new.stem};\n"),
            _Insert(r"^    &p\d+_\w+::\w+,\n", "pair in PAIRS", f"    &{new.stem}::{pair_type},\n"),
        ],
        f"{BENCH}/src/pairs/tests.rs": [
            _Insert(
                r'^    p\d+_twins_agree "P\d+"\n',
                "line `pN_twins_agree`",
                f'    {id_}_twins_agree "{upper}"\n',
            )
        ],
    }


def _in_wiring(new: New) -> list[_Insert]:
    """The baseline among the choices of each wiring, and the choice where a wiring is made."""
    upper, type_ = new.id.upper(), new.type_name
    if new.kind == "function":
        made, choice = f"const {upper}: bool = {upper};", f"pub const {upper}: bool = false;"
    else:
        before = f"crate::{new.parent}::{new.name}::{type_}Baseline"
        made, choice = f"type {type_} = {type_};", f"pub type {type_} = {before};"
    return [
        _Insert(
            rf"^ +impl \$crate::{new.parent}::\w+Wiring for \$name \{{\n(?: {{16}}.*\n)+",
            f"wiring of {new.parent} in its macro",
            f"                {made}\n",
        ),
        *(
            _Insert(
                rf"^pub mod {module} \{{\n(?:    .*\n|\n)+", f"module `{module}`", f"    {choice}\n"
            )
            for module in ("all_before", "shipped")
        ),
    ]


def _in_switchboard(new: New) -> list[_Insert]:
    """The entry, and what the test there says once more."""
    upper, name, type_ = new.id.upper(), new.name, new.type_name
    seam, found, more = "", f"W::{upper}", []
    if new.kind == "type":
        before, after = f"{type_}Baseline", f"{type_}Optimized"
        seam = f" type {type_} = {before} | {after}"
        found = f"is_after::<W::{type_}, {before}, {after}>()"
        path = f"{new.parent}::{name}::{{{before}, {after}}},\n"
        more = [_Insert(r"^use crate::\{\n", "`use crate::{`", path)]
    entry = f'    /// {upper}: {new.title.rstrip(".")}.\n    {upper} "opt-{new.id}"{seam};\n'
    return [
        _Insert(r'^    P\d+ "opt-p\d+".*;\n', 'entry `PN "opt-pN"`', entry),
        *more,
        _Insert(
            r"^ *\];\n(?= *let named = named)",
            "list `named` in its test",
            f'("{upper}", {found}),\n',
            before=True,
        ),
    ]


def _edited(path: str, inserts: list[_Insert], tree: Path) -> str:
    text = _read(tree, path)
    for insert in inserts:
        matches = list(re.finditer(insert.anchor, text, re.MULTILINE))
        if not matches:
            raise SkeletonError(
                f"{path}: has no {insert.what} to put a line beside; nothing written"
            )
        at = matches[-1].start() if insert.before else matches[-1].end()
        text = text[:at] + insert.lines + text[at:]
    return text


def _formatted(path: str, text: str, tree: Path) -> str:
    """Rust as rustfmt has it: it sorts modules and breaks lines that a long name makes long."""
    if not path.endswith(".rs") or shutil.which("rustfmt") is None:
        return text
    done = subprocess.run(
        ["rustfmt", "--edition", "2024", "--emit", "stdout"],
        input=text,
        capture_output=True,
        text=True,
        cwd=tree,
        check=False,
    )
    if done.returncode != 0:
        reason = next(iter(done.stderr.splitlines()), "no reason given")
        raise SkeletonError(f"{path}: would no longer be Rust ({reason}); nothing written")
    return done.stdout


def _read(tree: Path, path: str) -> str:
    try:
        return (tree / path).read_text(encoding="utf-8")
    except OSError as error:
        raise SkeletonError(f"{path}: cannot be read; `new` works in a checkout") from error


def uncommitted(paths: Any, tree: Path) -> list[str]:
    """Those of `paths` that differ from the last commit; none outside a repository."""
    asked = ("--porcelain", "-z", "--no-renames", "--untracked-files=no")
    try:  # not `git diff`, which writes the index
        lines = git.of(tree).run("status", *asked, "--", *paths).split("\0")[:-1]
    except git.GitError:
        return []
    return [line[3:] for line in lines]
