"""The site as files: all that is promised is on it, no link is broken, and nothing comes from
elsewhere."""

import argparse
import html
import posixpath
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import assemble
import links
import pages
import pytest
import settings
import verbs
import yaml
from projects import HERE, ROOT
from rlox_opt.system import exits


class Read(HTMLParser):
    """The anchors of a page, and what it refers to: links, and files that the browser loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        of = {name: value or "" for name, value in attrs}
        self.anchors |= {of[name] for name in ("id", "name") if of.get(name)}
        if tag == "a" and "href" in of:
            self.links.append(of["href"])
        elif tag == "link" and "href" in of:
            self.loaded.append(of["href"])
        elif "src" in of:
            self.loaded.append(of["src"])


@pytest.fixture(scope="module")
def every(site: Path) -> dict[str, Read]:
    """Each page, by its path."""
    found = {}
    for path in site.rglob("*.html"):
        found[str(path.relative_to(site))] = Read(path.read_text(encoding="utf-8"))
    return found


def words(site: Path, path: str) -> str:
    """What a page says, without markup."""
    text = (site / path).with_suffix(".html").read_text(encoding="utf-8")
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def test_no_link_and_no_anchor_is_broken(site: Path, every: dict[str, Read]) -> None:
    wrong, seen = [], 0
    for page, read in every.items():
        for link in (*read.links, *read.loaded):
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            seen += 1
            target = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(to.path)))
            target = page if not to.path else target
            anchor = unquote(to.fragment)
            if not (site / target).is_file() and not (site / target / "index.html").is_file():
                wrong.append(f"{page}: {link}")
            elif anchor and target in every and anchor not in every[target].anchors:
                wrong.append(f"{page}: {link}: no such anchor")
    assert wrong == []
    assert seen > 1000, "the links were read"


def test_no_page_looks_for_anything_at_the_root_of_a_host(every: dict[str, Read]) -> None:
    """The pages lie in a folder, from which they are opened as files."""
    asked = {f"{page}: {of}" for page, read in every.items() for of in read.links + read.loaded}
    assert asked
    assert sorted(of for of in asked if of.partition(": ")[2].startswith("/")) == []


def test_nothing_is_loaded_from_elsewhere(site: Path, every: dict[str, Read]) -> None:
    loaded = {of for read in every.values() for of in read.loaded}
    assert loaded
    assert [of for of in loaded if urlsplit(of).scheme or urlsplit(of).netloc] == []
    styles = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert styles
    assert not [of for text in styles for of in re.findall(r"url\(['\"]?(?:https?:)?//", text)]


def test_each_page_of_the_navigation_is_there_and_says_what_it_is_called(
    site: Path, every: dict[str, Read]
) -> None:
    for page in pages.every():
        path = str(Path(page.path).with_suffix(".html"))
        assert path in every
        told = words(site, page.path)
        assert page.title in told
        assert "<!-- not run" not in (site / path).read_text(encoding="utf-8")
    names = [page.path for page in pages.every()]
    assert len(names) == len({*names})


def test_each_page_of_the_repository_is_on_the_site() -> None:
    known = pages.by_source()
    here = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/guides").glob("*.md")]
    here += [*(ROOT / "docs/site/python").glob("*.md"), *ROOT.glob("*.md")]
    assert {str(path.relative_to(ROOT)) for path in here} <= {*known}


def test_every_verb_has_a_page_with_every_option_and_its_exit_codes(site: Path) -> None:
    of = verbs.verbs(HERE)
    assert {verb.words for verb in of} >= {"init", "diff", "gate", "profile script", "peers ppo"}
    codes = words(site, "reference/exit-codes.md")
    for verb in of:
        told = words(site, f"reference/verbs/{verb.slug}.md")
        for action in verb.parser._actions:
            if isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
                continue
            for name in action.option_strings or [str(action.metavar or action.dest)]:
                assert name in told, f"{verb.words} {name}"
        epilog = verb.parser.epilog or ""
        for line in epilog.partition("exit codes:\n")[2].splitlines():
            code, _, meaning = line.strip().partition(" ")
            assert meaning.strip().replace("`", "") in told, f"{verb.words}, exit code {code}"
        if "exit codes:" in epilog:
            assert verb.words in codes
    for meaning in exits.MEANINGS.values():
        assert meaning in codes


def test_no_folder_of_this_machine_is_on_a_page(site: Path) -> None:
    assert [path for path in site.rglob("*.html") if str(ROOT) in path.read_text("utf-8")] == []


def test_every_setting_is_on_its_page(every: dict[str, Read]) -> None:
    keys = settings.keys()
    assert {"package", "left-out.compared", "build.crate", "layers.owners.module"} <= {*keys}
    anchors = every["reference/settings.html"].anchors
    assert [key for key in keys if key.replace(".", "-") not in anchors] == []


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("trainers", ("rlox.learner.PPO", "rlox.learner.SAC", "rlox.learner.PPO.learn")),
        ("callbacks", ("rlox.learner.callbacks.EvalCallback",)),
        ("environments", ("rlox.env.VecEnv", "rlox.env.VecEnv.step", "rlox.build_info")),
        ("buffers", ("rlox.buffer.ReplayBuffer.sample",)),
        ("advantages", ("rlox.advantage.compute_gae", "rlox.advantage.compute_vtrace")),
        ("timing", ("rlox.timing.Timing.add_time", "rlox.timing.span")),
    ],
)
def test_the_python_api_is_there(every: dict[str, Read], page: str, names: tuple[str, ...]) -> None:
    assert {*names} <= every[f"reference/python/{page}.html"].anchors


def test_a_compiled_class_is_shown_with_the_arguments_of_its_stub(site: Path) -> None:
    told = re.sub(r"\s+", "", words(site, "reference/python/buffers.md"))
    assert "PrioritizedReplayBuffer(capacity:int,obs_dim:int,act_dim:int,alpha:float=0.6" in told


def test_docstrings_are_read_in_their_own_style(site: Path, every: dict[str, Read]) -> None:
    """Google's in Python, NumPy's in Rust, whichever page is made first."""
    seen = [page for page in every if page.startswith("reference/python/")]
    assert len(seen) == 6
    for page in seen:
        text = (site / page).read_text(encoding="utf-8")
        assert not re.search(r"<p>(?:Args|Parameters|Returns|Raises):\s", text), page
    assert "ndarray of shape (n,), float64" in words(site, "reference/python/advantages.md")
    assert "the title of the printed tree" in words(site, "reference/python/timing.md")


def _slugs(text: str) -> Iterator[str]:
    """The anchors that GitHub gives to headings."""
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    for heading in re.findall(r"^#+ (.*)$", prose, re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_links_between_files_of_the_repository_hold_on_github_as_well() -> None:
    wrong, seen = [], 0
    for source in pages.by_source():
        if not source.endswith(".md") or source.startswith("docs/site/"):
            continue
        text = (ROOT / source).read_text(encoding="utf-8")
        for to in re.findall(r"\]\(([^)\s]+)\)", text):
            if urlsplit(to).scheme:
                continue
            seen += 1
            path, _, anchor = to.partition("#")
            file = (ROOT / source).parent / path if path else ROOT / source
            if not file.exists():
                wrong.append(f"{source}: {to}")
            elif anchor and anchor not in {*_slugs(file.read_text(encoding="utf-8"))}:
                wrong.append(f"{source}: {to}: no such heading")
    assert wrong == []
    assert seen > 30


def test_a_link_that_leads_nowhere_stops_the_build(tmp_path: Path) -> None:
    with pytest.raises(links.MissingError, match=r"docs/x\.md: nowhere\.md leads to no file"):
        links.moved("[text](nowhere.md)", "docs/x.md", "x.md", {}, ROOT, tmp_path)


def test_what_is_no_folder_of_pages_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def assembled(_: Path) -> None:
        raise assemble.NotBuiltError("it came to building")

    monkeypatch.setattr(assemble, "_assemble", assembled)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "index.html").write_text("another's")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    for out in (theirs, theirs / "index.html", link):
        with pytest.raises(assemble.NotBuiltError, match="no folder of such pages; name another"):
            assemble.build(out)
    assert (theirs / "index.html").read_text() == "another's"
    ours, empty = tmp_path / "ours", tmp_path / "empty"
    (ours / assemble._WORKER).parent.mkdir(parents=True)
    (ours / assemble._WORKER).touch()
    empty.mkdir()
    for out in (ours, empty, tmp_path / "new"):
        with pytest.raises(assemble.NotBuiltError, match="it came to building"):
            assemble.build(out)


def test_a_section_that_the_readme_lacks_stops_the_build() -> None:
    with pytest.raises(assemble.NotBuiltError, match=r"README\.md: has no section 'The library'"):
        assemble._home((ROOT / "README.md").read_text().replace("## The library\n", "## It\n"))


def test_links_lead_where_the_site_has_what_they_mean(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("docs/a.md", "docs/b.md", "picture.png", "tool.py"):
        (tmp_path / name).touch()
    known = {"docs/b.md": "guides/b.md"}

    def moved(text: str) -> str:
        return links.moved(text, "docs/a.md", "reference/a.md", known, tmp_path, tmp_path)

    assert moved("[to](b.md#here)") == "[to](../guides/b.md#here)"
    assert moved("[of](../tool.py)") == "of (`tool.py`)"
    assert moved("It is (see [that](../tool.py)), [of](../tool.py)") == (
        "It is (see that `tool.py`), of (`tool.py`)"
    )
    assert moved("[`tool.py`](../tool.py)") == "`tool.py`"
    assert moved("![is](../picture.png)") == (
        "[![is](../pictures/picture.png)](../pictures/picture.png)"
    ), "a click shows it at its full size"
    assert (tmp_path / "pictures/picture.png").is_file()
    assert moved("[x](https://example.org)") == "[x](https://example.org)"
    assert moved("```\n[to](b.md)\n```") == "```\n[to](b.md)\n```", "code is left as it is"


def test_the_guide_lists_the_inputs_of_the_action() -> None:
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    guide = (ROOT / "docs/guides/pull-requests.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", guide, re.M))
    assert rows.keys() == inputs.keys()
    for name, said in inputs.items():
        default = str(said["default"])
        if default and not default.startswith("$"):
            assert rows[name] == f"`{default}`"


def test_an_interrupted_copy_leaves_the_former_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, out = tmp_path / "made", tmp_path / "site"
    for folder, text in ((made, "new"), (out, "old")):
        folder.mkdir()
        (folder / "index.html").write_text(text)

    def half(_: Path, to: Path) -> None:
        to.mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("shutil.copytree", half)
        with pytest.raises(KeyboardInterrupt):
            assemble._put(made, out)
    assert {of.name for of in tmp_path.iterdir()} == {"made", "site"}
    assert (out / "index.html").read_text() == "old"
    assemble._put(made, out)
    assert (out / "index.html").read_text() == "new"
    assert {of.name for of in tmp_path.iterdir()} == {"made", "site"}
