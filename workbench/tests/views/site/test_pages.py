"""The published folder: what is on its pages, where its links lead, what a new commit changes."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import made_up_history
import msgspec
import pytest
import toy_history
import toy_projects
from made_up_history import publish
from markupsafe import escape

from rlox_opt.history import ledger
from rlox_opt.history.acknowledged import Acknowledgement
from rlox_opt.views.site import Published
from rlox_opt.views.site.layout import (
    PAGES,
    benchmark_path,
    commit_path,
    data_path,
    diff_path,
    parted,
)
from rlox_opt.views.site.model import History, read

STEPPED = made_up_history.NAMES[1]


class Links(HTMLParser):
    """Where a page's links, scripts and styles are, and its ids."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.targets.append(value)
            if name == "id" and value is not None:
                self.ids.append(value)


def all_pages(pages: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(pages.rglob("*.html")):
        yield path, path.read_text(encoding="utf-8")


def data(path: Path) -> Any:
    """What a data script holds."""
    found = re.fullmatch(r"\(window\.rlox \?\?= \{\}\)\.\w+ = (.*);\n", path.read_text())
    assert found
    return json.loads(found[1])


@pytest.fixture(scope="module")
def read_of(pages: Path) -> dict[Path, Links]:
    """What each page has, by its path."""
    return {path.resolve(): Links(text) for path, text in all_pages(pages)}


def test_every_link_leads_to_a_file_and_every_anchor_to_a_part(
    pages: Path, read_of: dict[Path, Links]
) -> None:
    seen = 0
    for path, links in read_of.items():
        for target in links.targets:
            name, _, anchor = unquote(target).partition("#")
            at = (path.parent / name).resolve() if name else path
            assert at.is_relative_to(pages.resolve()), (path, target)
            assert at.is_file(), (path, target)
            if anchor and at.suffix == ".html":
                assert anchor in read_of[at].ids, (path, target)
            seen += 1
    assert seen > 1000


def test_commits_can_be_led_to_by_eight_digits_of_their_hash(pages: Path, history: History) -> None:
    ids = set(Links((pages / "commits.html").read_text()).ids)
    assert {commit.hash[:8] for commit in history.commits} <= ids


def test_no_page_asks_for_anything_from_elsewhere(pages: Path) -> None:
    for path, text in all_pages(pages):
        assert not re.search(r"""(src|href)=["']?(https?:)?//""", text), path
    for path in (pages / "static").glob("*.[cj]s*"):
        assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest", path.read_text()), path


def test_no_page_has_an_id_twice(read_of: dict[Path, Links]) -> None:
    for path, links in read_of.items():
        assert len(links.ids) == len(set(links.ids)), path


def test_text_is_escaped(pages: Path, history: History) -> None:
    bytes_ = next(commit for commit in history.commits if "<in bytes>" in commit.subject)
    for path in ("commits.html", commit_path(bytes_.hash), diff_path(bytes_.hash)):
        text = (pages / path).read_text()
        assert "know their own size &amp; say it &lt;in bytes&gt;" in text
        assert "<in bytes>" not in text


def test_the_overview_has_a_row_for_each_benchmark_and_feature_set(pages: Path) -> None:
    text = (pages / "index.html").read_text()
    rows = re.findall(r'<tr data-text="([^"]+)" data-features="([^"]+)"', text)
    names = [*made_up_history.NAMES, "train.ppo", "train.sac"]
    assert len(rows) == len(set(rows)) == len(names) * len(made_up_history.FEATURES)
    row = next(
        row for row in text.split("<tr ") if f"{STEPPED}".lower() in row and "baseline" in row
    )
    assert re.search(r"▲ \+1[45]\.\d % slower", row)
    assert "Rows are copied once, not twice" in row  # the subject of commit 12
    assert re.search(r"1\.1[45]× \(1\.1", row)


def test_the_overview_says_which_times_are_not_searched(tmp_path: Path) -> None:
    def overview(name: str) -> str:
        publish(tmp_path / name / "pages", History.of(read(tmp_path / name)))
        return (tmp_path / name / "pages" / "index.html").read_text()

    made_up_history.write(tmp_path / "short", commits=3, benchmarks=2)
    told, why = overview("short"), "are not searched: their newest machine and control have"
    assert f"8 of 12 times {why} fewer than 10 recordings of them." in told
    assert f"4 of 12 times {why} no ratio of them." in told  # those by criterion
    made_up_history.write(tmp_path / "long", 10, 1, moved_at=None, kinds=("time",))
    assert "not searched" not in overview("long")


def test_the_page_of_a_benchmark_has_all_its_kinds_and_tells_its_level_changes(
    pages: Path, history: History
) -> None:
    text = (pages / benchmark_path(STEPPED)).read_text()
    for title in ("from Python", "in Rust", "callgrind", "allocations", "memory"):
        assert re.search(f"<h2>[^<]*{title}", text), title
    culprit = history.commits[12]
    moves = re.findall(r'<li id="time-\d">.*?</li>', text, re.DOTALL)
    assert len(moves) == 2
    for move in moves:
        assert culprit.subject in move
        assert f'href="../{diff_path(culprit.hash)}"' in move
        assert f'href="../{commit_path(culprit.hash)}#flamegraph"' in move
        assert re.search(r'href="\.\./raw/[^"]+\.json"', move)
        assert "Rust 93 %, Python 12 %, Kernel −5 %" in move  # of the cause that was recorded
        assert "<code>training::gae::baseline</code>" in move
        assert re.search(r"PPO: Rust \+\d", move)  # its profile has 1.6 times the Rust


def test_the_charts_get_the_numbers_of_the_store(pages: Path, store: Path) -> None:
    charts = data(pages / data_path(STEPPED))
    assert [chart["kind"] for chart in charts] == [
        "time", "criterion", "instructions", "allocations", "peak_memory",
    ]  # fmt: skip
    line = next(
        line for line in charts[0]["lines"] if line["label"].startswith("baseline, example")
    )
    assert line["x"] == list(range(24))
    for recording in read(store):
        entry = recording.entry
        number = [hash_[:7] for hash_, *_ in data(pages / "data/commits.js")].index(
            entry.commit[:7]
        )
        if entry.features or number >= 24:
            continue
        cell = next(c for c in entry.cells if (c.benchmark, c.kind) == (STEPPED, "time"))
        assert cell.ratio_ci99 is not None
        assert line["value"][number] == pytest.approx(cell.value, rel=1e-4)
        assert line["ratio"][number] == pytest.approx(cell.ratio, rel=1e-4)
        assert line["low"][number] == pytest.approx(cell.ratio_ci99[0], rel=1e-4)
    assert charts[0]["marks"] == [{"first": 1, "last": 2, "x": 12, "kind": "worse", "alarm": False}]


def test_the_page_of_a_commit_tells_what_moved_and_in_which_layer(
    pages: Path, history: History
) -> None:
    text = (pages / commit_path(history.commits[12].hash)).read_text()
    moved = text[text.index('id="moved"') : text.index("</section>")]
    assert moved.count("▲") == 4  # time and instructions, with both feature sets
    rust = re.search(r"></i>Rust</span>.*?change (\w+)\">(\S+) points", text, re.DOTALL)
    assert rust
    assert rust[1] == "worse"
    assert 2 < float(rust[2]) < 8  # 0.6 of 14 %, of some 1 / 1.2 of the control's time
    flame = json.loads(text.split('id="flame-data">')[1].split("</script>")[0])
    assert [tree["of"] for tree in flame["tools"].values()] == ["the control's time a step"] * 4
    quiet = (pages / commit_path(history.commits[5].hash)).read_text()
    assert "No series changes its level here." in quiet


def test_a_regression_that_is_meant_says_why_and_is_explained(
    tmp_path: Path, store: Path, history: History
) -> None:
    culprit = history.commits[12].hash
    reason = "checks its bounds <now>"
    known = [
        Acknowledgement(STEPPED, "time", 1.3, reason, culprit[:10]),
        Acknowledgement(STEPPED, "instructions", 1.001, "a few", culprit[:10]),
    ]
    meant = History.of(read(store), acknowledged=known)
    assert sum(moved.unexplained for moved in history.moved) == 4
    assert {m.series.kind for m in meant.moved if m.unexplained} == {"instructions"}
    publish(tmp_path / "pages", meant)
    for path in ("index.html", benchmark_path(STEPPED), commit_path(culprit)):
        page = (tmp_path / "pages" / path).read_text()
        assert "meant: checks its bounds &lt;now&gt;" in page
        assert path == "index.html" or "meant, but for +0.1 % at most: a few" in page


def test_what_could_not_be_measured_is_told(pages: Path, history: History) -> None:
    text = (pages / commit_path(history.commits[7].hash)).read_text()
    assert "data_plane.Push.time_push(4): timed out after 60 s" in text


def test_what_is_built_otherwise_than_before_is_told(pages: Path, history: History) -> None:
    told = "than the recording before: allocator: mimalloc → off"
    texts = [(pages / commit_path(history.commits[n].hash)).read_text() for n in (8, 9, 10)]
    assert [told in text for text in texts] == [False, True, False]


def test_the_shares_of_layers_add_up_at_each_commit(pages: Path) -> None:
    charts = data(pages / "data/profiles.js")
    assert len(charts) == 8  # two trainers, two feature sets, two machines
    for chart in charts:
        for column in zip(*(layer["share"] for layer in chart["layers"]), strict=True):
            assert sum(column) == pytest.approx(1, abs=1e-3)


def test_every_card_has_a_page_with_its_prediction(pages: Path) -> None:
    listed = (pages / "optimisations.html").read_text()
    for line in made_up_history.ledger():
        text = (pages / f"optimisation/{line.card.id.lower()}.html").read_text()
        assert escape(line.card.title) in text
        assert f'href="optimisation/{line.card.id.lower()}.html"' in listed
        if line.outcome:
            assert {"inside": "as", "below": "less than", "above": "more than"}[
                line.outcome
            ] + " predicted" in text
    p5 = (pages / "optimisation/p5.html").read_text()
    assert "sample_256 at n = 1,000,000" in p5
    assert escape(made_up_history.NAMES[5]) in p5.replace("<wbr>", "")


def test_what_a_card_has_between_backticks_is_code(pages: Path) -> None:
    text = "\nLess than `a<b>` takes, or\n`tests/x.md`; a ` alone stays.\n"
    assert parted(text) == [
        "Less than ", "a<b>", " takes, or\n", "tests/x.md", "; a ` alone stays."
    ]  # fmt: skip
    assert (
        "whenever <code>set</code> sets a priority." in (pages / "optimisation/p5.html").read_text()
    )


def test_publishing_again_writes_nothing(pages: Path, history: History) -> None:
    files = {path: path.stat().st_mtime_ns for path in pages.rglob("*.*") if path.is_file()}
    again = publish(pages, history, made_up_history.ledger())
    assert (again.written, again.removed) == (0, 0)
    del files[pages / ".published.json"]
    assert {path: path.stat().st_mtime_ns for path in files} == files


def test_a_new_commit_touches_no_page_of_an_old_one_but_its_neighbour(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "pages"
    names = made_up_history.write(store, commits=12, benchmarks=3)
    publish(out, History.of(read(store)))
    before = {path: path.stat().st_mtime_ns for path in (out / "commit").iterdir()}
    made_up_history.write(store, commits=13, benchmarks=3, first=12)
    publish(out, History.of(read(store)))
    changed = {path.stem for path in before if path.stat().st_mtime_ns != before[path]}
    assert changed == {names[11][:12]}  # it links to what comes after
    assert len(list((out / "commit").iterdir())) == 13


def test_a_history_that_shrinks_loses_its_pages(tmp_path: Path) -> None:
    store, out = tmp_path / "store", tmp_path / "pages"
    names = made_up_history.write(store, commits=3, benchmarks=2)
    publish(out, History.of(read(store)))
    for path in store.glob(f"*/*{names[2][:10]}*"):
        path.unlink()
    done = publish(out, History.of(read(store)))
    assert not (out / commit_path(names[2])).exists()
    assert not (out / diff_path(names[2])).exists()
    assert done.removed == 4  # and its two recordings


def test_commits_that_git_has_show_their_code(tmp_path: Path) -> None:
    _, head = toy_history.commits(tmp_path, [{"passes": 1}, {"passes": 2}])
    made_up_history.write(tmp_path / "store", hashes=[head, "f" * 40], benchmarks=1)
    checkout = toy_history.project(tmp_path)
    publish(tmp_path / "pages", History.of(read(tmp_path / "store")), project=checkout)
    assert "diff --git" in (tmp_path / "pages" / diff_path(head)).read_text()
    unknown = (tmp_path / "pages" / diff_path("f" * 40)).read_text()
    assert "does not have this commit" in unknown


def test_every_page_is_titled_with_the_package_and_made_anew_for_another(tmp_path: Path) -> None:
    made_up_history.write(tmp_path / "store", commits=2, benchmarks=1)
    history, out = History.of(read(tmp_path / "store")), tmp_path / "pages"
    for package in ("rlox", "<b>other"):
        publish(out, history, project=toy_projects.of(tmp_path, package=package))
        pages = {path: path.read_text() for path in out.rglob("*.html")}
        kinds = {path.parent.relative_to(out).as_posix() for path in pages}
        assert kinds == {".", "benchmark", "commit", "diff"}
        site = f"{escape(package)} performance history"
        assert [at for at, page in pages.items() if f": {site}</title>" not in page] == []
        assert f'<p class="over">{site}</p>' in pages[out / "index.html"]


def test_without_any_recording_there_are_pages_that_say_so(tmp_path: Path) -> None:
    done = publish(tmp_path / "pages", History.of([]), project=toy_projects.of(tmp_path))
    assert done == Published(0, 0, done.written, 0, 0)
    for name, text in (
        ("index", "Nothing is recorded yet"),
        ("profiles", "No commit was recorded with a profile"),
        ("optimisations", "There are no cards"),
        ("trust", "No machine is calibrated yet"),
    ):
        assert text in (tmp_path / f"pages/{name}.html").read_text()


def test_raw_recordings_are_there_to_the_byte(pages: Path, store: Path) -> None:
    for path in store.glob("*/*.json"):
        assert (pages / "raw" / path.parent.name / path.name).read_bytes() == path.read_bytes()


def test_the_chart_library_comes_with_its_licence(pages: Path) -> None:
    assert "MIT License" in (pages / "static/uPlot.LICENSE").read_text()


def test_the_navigation_leaves_out_what_a_project_has_nothing_for(
    pages: Path, tmp_path: Path
) -> None:
    def led_to(path: Path) -> list[str]:
        found = re.search(r'<nav aria-label="Pages">(.*?)</nav>', path.read_text(), re.DOTALL)
        assert found
        return [Path(target).name for target in Links(found[1]).targets]

    assert led_to(pages / "index.html") == list(PAGES)
    store, out = tmp_path / "store", tmp_path / "pages"
    made_up_history.write(store, commits=3, benchmarks=2, first=1, profiled_every=9)
    project = toy_projects.of(tmp_path, cards="planned", workloads="runs")
    publish(out, History.of(read(store)), project=project)
    for _, text in all_pages(out):
        assert not re.search(r"PPO|SAC", text)
    for path in (out / "index.html", next((out / "commit").iterdir())):
        assert led_to(path) == ["index.html", "commits.html", "trust.html"]
    for name, told in (
        (
            "optimisations",
            "There are no cards in planned/: an optimisation that is planned has one",
        ),
        ("profiles", "takes them of the runs that runs/options.py describes"),
    ):
        page = re.sub(r"<[^>]+>", "", (out / f"{name}.html").read_text())
        assert told in re.sub(r"\s+", " ", page)
    # The first card, and the first profile, change what every page leads to.
    made_up_history.write(store, commits=4, benchmarks=2, first=3)
    publish(out, History.of(read(store)), ledger.lines(toy_projects.PROJECT)[:1], project)
    for path in (out / "index.html", *(out / "commit").iterdir(), *(out / "diff").iterdir()):
        assert led_to(path) == list(PAGES)


def test_cards_without_predictions_and_ladders_are_listed_all_the_same(tmp_path: Path) -> None:
    known = [line.card for line in ledger.lines(toy_projects.PROJECT)][:2]
    bare = [
        msgspec.structs.replace(of, status="candidate", prediction=None, finding="", record="")
        for of in known
    ]
    publish(tmp_path, History.of([]), [ledger.Line(card, [], None) for card in bare])
    listed = (tmp_path / "optimisations.html").read_text()
    assert re.findall(r'<th scope="col"[^>]*>([^<]+)', listed) == [
        "Optimisation", "Status", "Predicted", "Realised (95 % interval)", "Outcome",
    ]  # fmt: skip
    assert "Predicted against realised" not in listed
    for card in bare:
        assert f'href="optimisation/{card.id.lower()}.html"' in listed


def test_a_column_is_there_for_each_ladder_that_was_climbed(tmp_path: Path) -> None:
    gain = {"ratio": 1.2, "verdict": "faster", "ci95": [1.1, 1.3]}
    line = ledger.lines(toy_projects.PROJECT)[0]
    climbed = {"dqn": {"id": line.card.id, "alone": gain, "with_the_others": gain}}
    publish(tmp_path, History.of([]), [ledger.Line(line.card, [], None, climbed)])
    listed = (tmp_path / "optimisations.html").read_text()
    assert re.findall(r">(\w+) end to end<", listed) == ["DQN"]
    assert "1.20× (1.1–1.3)" in listed
