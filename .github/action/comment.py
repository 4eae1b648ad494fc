"""Keep one comment of ours on a pull request: `comment.py NUMBER FILE` writes it, or rewrites it.
`comment.py NUMBER FILE TITLE` keeps one beside it, below that title.

What GitHub refuses is a warning, for the verdicts stand in the job's summary. GITHUB_API_URL,
GITHUB_REPOSITORY and GITHUB_TOKEN are the runner's.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

MARKER = "<!-- rlox-opt gate{} -->"  # what no reader sees, and ours begins with
_LONGEST = 65_536  # characters that GitHub takes
_CUT = "\n\nThe rest is in the job's summary."
_PAGE = 100
_PATIENCE_S = 30.0


def asked(method: str, path: str, body: str | None = None) -> Any:
    """What GitHub answers. Raises HTTPError where it refuses, URLError where it is not there."""
    url = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}/{path}"
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
        "Content-Type": "application/json",
    }
    data = None if body is None else json.dumps({"body": body}).encode()
    with urlopen(Request(url, data, headers, method=method), timeout=_PATIENCE_S) as answer:
        return json.load(answer)


def ours(number: str, marker: str) -> int | None:
    """The id of the comment on a pull request that begins with a marker, if there is one."""
    page = 1
    while True:
        found = asked("GET", f"issues/{number}/comments?per_page={_PAGE}&page={page}")
        for comment in found:
            if comment["body"].startswith(marker):
                return int(comment["id"])
        if len(found) < _PAGE:
            return None
        page += 1


def main(number: str, path: Path, title: str = "") -> None:
    """Write it, or say why not."""
    title = " ".join(title.split())
    # A ">" could end the marker.
    marker = MARKER.format(f": {title.replace('>', '')}" if title else "")
    heading = f"## {title}\n\n" if title else ""
    body = f"{marker}\n{heading}{path.read_text(encoding='utf-8')}"
    if len(body) > _LONGEST:
        body = body[: _LONGEST - len(_CUT)].rpartition("\n")[0] + _CUT
    try:
        known = ours(number, marker)
        if known is None:
            asked("POST", f"issues/{number}/comments", body)
        else:
            asked("PATCH", f"issues/comments/{known}", body)
    except (URLError, OSError) as error:
        remedy = ""
        if isinstance(error, HTTPError) and error.code in (403, 404):
            remedy = "give the job `permissions: pull-requests: write` (a fork's never has it); "
        print(
            f"::warning::rlox-opt: the pull request got no comment ({error}); {remedy}the verdicts "
            "are in the job's summary"
        )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
