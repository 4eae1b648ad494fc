"""A user's repository with work in every state that git knows, and a fingerprint of all its bytes.

What the tool does must leave the fingerprint as it was.
"""

import hashlib
import os
import stat
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

HISTORY = ({"README.md": "one\n"}, {"README.md": "two\n"})
_TRACKED = {
    ".gitignore": "/target/\n*.ignored\n",
    "edited": "as committed\n",
    "staged": "as committed\n",
    "staged, then edited": "as committed\n",
    "deleted": "as committed\n",
    "deleted and staged": "as committed\n",
    "stashed": "as committed\n",
    "package/module.py": "as committed\n",
}


def git(folder: Path, *arguments: str) -> str:
    """What git says in `folder`, stripped, whatever repository the environment names."""
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", *who, *arguments]
    done = subprocess.run(command, cwd=folder, env=clean, capture_output=True, check=True)
    return done.stdout.decode(errors="replace").strip()


def make(folder: Path, history: Sequence[Mapping[str, str]] = HISTORY) -> Path:
    """A new repository in `folder`: a commit on main for each files and texts of `history`, a
    branch, a tag, and uncommitted work."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    for number, files in enumerate(history):
        for name, text in {**(_TRACKED if number == 0 else {}), **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "-m", f"number {number}")
    git(folder, "branch", "side")
    git(folder, "tag", "v1")
    work(folder)
    return folder


def work(folder: Path) -> None:
    """Work that is in no commit, into a checkout of such a repository: stashed, staged, edited,
    deleted, untracked and ignored files, a link and an empty folder."""
    (folder / "stashed").write_text("in the stash alone\n")
    git(folder, "stash", "push", "--quiet")
    for name in ("staged", "staged, then edited", "staged and new"):
        (folder / name).write_text("staged\n")
    (folder / "deleted and staged").unlink()
    git(folder, "add", "--all")
    for name in ("edited", "staged, then edited", "untracked", "an.ignored", "package/untracked"):
        (folder / name).write_text("of this worktree alone\n")
    (folder / "deleted").unlink()
    (folder / "package" / "module.py").chmod(0o755)
    (folder / "link").symlink_to("nowhere")
    (folder / "empty").mkdir()


def fingerprint(folder: Path, own: str = "target") -> dict[str, str]:
    """A digest of the kind, mode and bytes of all that lies in a checkout and in its git folders:
    worktree, index, HEAD, refs, stash, logs, config, hooks and objects. The tool's folder,
    `own`, is left out. Asks git nothing, so it says the same inside a hook."""
    found = dict(_digests(folder, "", without=own))
    if (folder / ".git").is_file():  # a linked worktree, or a submodule
        own = folder / (folder / ".git").read_text().strip().removeprefix("gitdir: ")
        shared = own / "commondir"
        common = own / shared.read_text().strip() if shared.exists() else own
        found |= dict(_digests(common.resolve(), "git folder/"))
    return found


def _digests(folder: Path, prefix: str, without: str = "") -> Iterator[tuple[str, str]]:
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name == without:
            continue
        path, kind = Path(entry.path), entry.stat(follow_symlinks=False).st_mode
        content = b""
        if stat.S_ISLNK(kind):
            content = os.fsencode(path.readlink())
        elif stat.S_ISREG(kind):
            content = path.read_bytes()
        name = f"{prefix}{entry.name}"
        yield name, hashlib.sha256(f"{kind:o} ".encode() + content).hexdigest()
        if stat.S_ISDIR(kind):
            yield from _digests(path, f"{name}/")
