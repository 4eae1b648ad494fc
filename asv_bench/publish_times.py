"""How long publishing takes, and how soon a page shows its first chart.

    .venv/bin/python asv_bench/publish_times.py [--commits 2000] [--series 200]

A made-up history of so many commits and series is published three times: from nothing, unchanged,
and after one more commit. Then pages are opened from files in headless Chromium, each in a new
browser context. The time is measured from navigation to the first frame that is drawn after the
charts were made. The record goes to asv_bench/record/<machine>/.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import sync_playwright
from rlox_opt.project import calibration
from rlox_opt.views.site import publish
from rlox_opt.views.site.layout import benchmark_path, commit_path
from rlox_opt.views.site.model import History, read

from asv_bench.project import PROJECT

sys.path.insert(0, str(PROJECT.root / "workbench" / "tests"))
sys.path.insert(0, str(PROJECT.root / "workbench" / "tests" / "views" / "site"))
import made_up_history

OPENINGS = 7
# Charts report when they are drawn. A page without charts is drawn when it is loaded.
FIRST_FRAME = """() => new Promise(done => {
  const drawn = performance.getEntriesByName("drawn");
  const told = () => done({ drawn: drawn.length > 0, ms: performance.now() });
  requestAnimationFrame(() => setTimeout(told));
})"""


def published(folder: Path, commits: int, series: int) -> tuple[dict[str, float], Path, list[str]]:
    """Seconds of each publication, the pages, the commits' hashes."""
    store, out = folder / "store", folder / "pages"
    # Two kinds of figures of every benchmark, and the speed of two trainers, with two feature sets.
    benchmarks = (series - 4) // 4
    named = {
        "benchmarks": benchmarks,
        "kinds": ("time", "instructions", "steps"),
        "steps": steps(commits),
    }
    made_up_history.write(store, commits, **named)
    seconds = {}
    for name, more in (("from nothing", 0), ("unchanged", 0), ("one commit more", 1)):
        names = made_up_history.write(
            store, commits + more, first=commits if more else commits + 1, **named
        )
        start = time.perf_counter()
        done = publish(out, History.of(read(store)), (), PROJECT)
        seconds[name] = round(time.perf_counter() - start, 2)
        print(f"{name:16} {seconds[name]:7.1f} s  {done}", flush=True)
    return seconds, out, names


def steps(commits: int) -> list[made_up_history.Step]:
    """A change of 5 % somewhere in each of twenty benchmarks."""
    return [made_up_history.Step(n, commits * (n + 1) // 22, 1.05) for n in range(20)]


def opened(out: Path, names: list[str]) -> Iterator[tuple[str, list[float]]]:
    """Milliseconds to the first chart of a page of each kind, for several openings."""
    pages = {
        "overview": "index.html",
        "benchmark": benchmark_path(made_up_history.benchmark_name(1)),
        "commit": commit_path(names[len(names) // 2]),
        "profiles": "profiles.html",
    }
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as driver:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = driver.chromium.launch(executable_path=chromium, args=arguments)
        for kind, path in pages.items():
            took = []
            for _ in range(OPENINGS):
                page = browser.new_context(offline=True).new_page()
                page.goto((out / path).as_uri())
                frame = page.evaluate(FIRST_FRAME)
                if kind in ("benchmark", "profiles") and not frame["drawn"]:
                    raise RuntimeError(f"{path}: no chart was drawn")
                took.append(round(frame["ms"], 1))
                page.context.close()
            print(f"{kind:16} {statistics.median(took):7.0f} ms to the first chart", flush=True)
            yield kind, took
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commits", type=int, default=2000, metavar="N")
    parser.add_argument("--series", type=int, default=200, metavar="N")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rlox-publish-times-") as folder:
        seconds, out, names = published(Path(folder), arguments.commits, arguments.series)
        size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
        first_chart_ms = dict(opened(out, names))
    path, _ = calibration.keep(
        PROJECT,
        "publish_times",
        commits=arguments.commits,
        series=arguments.series,
        bytes=size,
        publish_s=seconds,
        first_chart_ms=first_chart_ms,
    )
    print(path)


if __name__ == "__main__":
    main()
