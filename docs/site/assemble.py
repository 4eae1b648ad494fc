"""Makes the documentation's pages, from files and nothing else.

What is Markdown in the repository is read where it lies; the reference is generated from the
parser, the schema and the docstrings. The pages open from files, without a network.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import links
import pages
import settings
import verbs
from pages import ROOT
from rlox_opt.project.project import Project

HERE = Path(__file__).parent
# Of the README, what a reader of the site wants; the rest is in pages of its own.
_OF_README = (
    "", "Your own project", "How far a verdict can be trusted", "The library", "What it runs on",
)  # fmt: skip
_OF_TESTS = re.compile(r"^<!-- (?:not run|given):.*?-->\n", re.MULTILINE | re.DOTALL)
_PYTHON = "[project.plugins.mkdocstrings.handlers.python"
_CDN = re.compile(r'<script src="https://unpkg\.com/iframe-worker/shim"[^>]*></script>')
_WORKER = "assets/javascripts/worker.js"  # by which a folder of such pages is known


class NotBuiltError(Exception):
    """The pages could not be made; the message says why."""


def build(out: Path) -> None:
    """Make the site in the folder `out`, which is made anew.

    Raises:
        NotBuiltError: a link leads nowhere, zensical finds something wrong, or `out` holds
            something else than such pages.
    """
    _require_replaceable(out)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        _assemble(work)
        command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", "zensical.toml"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, errors="replace")
        if done.returncode or not (work / "site" / "index.html").exists():
            raise NotBuiltError(f"{done.stdout}{done.stderr}".strip())
        _open_from_files(work / "site")
        _put(work / "site", out)


def _put(made: Path, out: Path) -> None:
    """Put the folder `made` in the place of `out`. Where that is interrupted the former pages stay,
    or there are none; half of the pages are never there."""
    with tempfile.TemporaryDirectory(dir=_folder(out.parent), prefix=f".{out.name}-") as folder:
        beside = Path(folder)
        shutil.copytree(made, beside / "new")
        if out.exists():
            out.rename(beside / "old")
        (beside / "new").rename(out)


def _require_replaceable(out: Path) -> None:
    """Raise NotBuiltError where others than these pages would be removed."""
    if not out.exists() and not out.is_symlink():
        return
    folder = out.is_dir() and not out.is_symlink()
    if not folder or (any(out.iterdir()) and not (out / _WORKER).is_file()):
        raise NotBuiltError(f"{out}: is no folder of such pages; name another")


def _assemble(work: Path) -> None:
    """What zensical reads: its configuration, and all pages as Markdown."""
    docs = work / "docs"
    project = Project.find(ROOT)
    every = verbs.verbs(project)
    made: dict[str, Callable[[], str]] = {
        pages.VERBS: lambda: verbs.overview(project),
        pages.SETTINGS: settings.page,
        pages.EXITS: lambda: verbs.exit_codes(project),
    }
    known = pages.by_source()
    for page in pages.every():
        if page.source in made:
            text = made[page.source]()
        else:
            text = (ROOT / page.source).read_text(encoding="utf-8")
            if page.source == pages.HOME:
                text = _home(text)
            text = _OF_TESTS.sub("", text)
            try:
                text = links.moved(text, page.source, page.path, known, ROOT, _folder(docs))
            except links.MissingError as error:
                raise NotBuiltError(f"{error}") from None
        _write(docs / page.path, text)
    for verb in every:
        _write(docs / f"reference/verbs/{verb.slug}.md", verbs.page(verb, ROOT))
    for name in ("extra.css", "access.js"):
        shutil.copyfile(HERE / name, docs / name)
    text = (HERE / "zensical.toml").read_text(encoding="utf-8")
    head, rest = text.split("\n[project.theme]", 1)
    options = f"extensions = {_toml([str(HERE / 'constructors.py')])}\n"
    nav = _toml(_navigation(every))
    rest = rest.replace(
        f"{_PYTHON}.options]\n",
        f"{_PYTHON}]\npaths = {_toml([str(ROOT)])}\n\n{_PYTHON}.options]\n{options}",
    )
    _write(work / "zensical.toml", f"{head}\nnav = {nav}\n\n[project.theme]{rest}")


def _home(readme: str) -> str:
    """The parts of the README that are a reader's first."""
    sections = {"": ""}
    for part in re.split(r"^(?=## )", readme, flags=re.MULTILINE):
        title = part.partition("\n")[0].removeprefix("## ") if part.startswith("## ") else ""
        sections[title] = part
    sections[""] = sections[""].replace("# rlox", "# rlox-opt and rlox", 1)
    for title in _OF_README:
        if title not in sections:
            raise NotBuiltError(f"{pages.HOME}: has no section {title!r}")
    return "".join(sections[title].rstrip() + "\n\n" for title in _OF_README)


def _navigation(every: Sequence[verbs.Verb]) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for title, of in pages.SECTIONS.items():
        entries: list[dict[str, object]] = []
        python: list[dict[str, object]] = []
        for page in of:
            if page.source == pages.VERBS:
                inner: list[object] = [page.path]
                inner += [{verb.words: f"reference/verbs/{verb.slug}.md"} for verb in every]
                entries.append({page.title: inner})
            elif page.path.startswith("reference/python/"):
                python.append({page.title: page.path})
            else:
                entries.append({page.title: page.path})
        if python:
            entries.append({"Python API of rlox": python})
        found += [{title: entries}] if title else entries
    return found


def _toml(value: object) -> str:
    """Lists and tables of texts, on one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _open_from_files(site: Path) -> None:
    """A browser starts no worker from a file, so the search would need a script from elsewhere.
    Instead the worker's source lies in a script of the site, which starts it from memory. The page
    for what is not found goes."""
    # Its styles and links begin at the root of a host; these pages need none, and lie in a folder.
    (site / "404.html").unlink()
    (worker,) = (site / "assets/javascripts/workers").glob("search.*.min.js")
    source = json.dumps(worker.read_text(encoding="utf-8")).replace("</", "<\\/")
    text = (HERE / "worker.js").read_text(encoding="utf-8").replace('"SOURCE"', source, 1)
    (site / _WORKER).write_text(text, encoding="utf-8")
    for page in site.rglob("*.html"):
        base = "../" * (len(page.relative_to(site).parts) - 1) or "./"
        script = f'<script src="{base}{_WORKER}"></script>'
        html, count = _CDN.subn(script, page.read_text(encoding="utf-8"))
        if not count:
            raise NotBuiltError(f"{page.name}: zensical loads the search's worker in another way")
        page.write_text(html, encoding="utf-8")


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _write(path: Path, text: str) -> None:
    _folder(path.parent)
    path.write_text(text, encoding="utf-8")
