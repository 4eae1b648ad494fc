"""uv is told what pip is, and its errors are told in a line."""

from pathlib import Path

import pytest

from rlox_opt.system import uv
from rlox_opt.system.commands import Done

CONF = """
[global]
index-url = https://packages.example/simple
extra-index-url =
    https://one.example/simple
    https://two.example/simple
cert = /etc/certificate.pem
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS", "UV_CONFIG_FILE",
                 "PIP_INDEX_URL", "PIP_CERT", "PIP_FIND_LINKS", "SSL_CERT_FILE", "ALL_PROXY",
                 "PIP_CONFIG_FILE"):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    (tmp_path / "settings" / "pip").mkdir(parents=True)
    (tmp_path / "settings" / "pip" / "pip.conf").write_text(CONF)
    return tmp_path


def told() -> dict[str, str]:
    return uv._of_pip()


def test_where_packages_come_from_is_as_pip_has_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {
        "UV_DEFAULT_INDEX": "https://packages.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "SSL_CERT_FILE": "/etc/certificate.pem",
    }
    assert told() | expected == told()  # the machine's own file may say more
    monkeypatch.setenv("PIP_INDEX_URL", "https://other.example/simple")
    monkeypatch.setenv("SSL_CERT_FILE", "/mine.pem")
    assert told()["UV_DEFAULT_INDEX"] == "https://other.example/simple"
    assert "SSL_CERT_FILE" not in told(), "the environment has one"


def test_settings_of_uvs_own_come_first(home: Path) -> None:
    (home / "settings" / "uv").mkdir()
    (home / "settings" / "uv" / "uv.toml").write_text("")
    assert told() == {}


def test_settings_that_nobody_can_read_are_left_out(home: Path) -> None:
    (home / "settings" / "pip" / "pip.conf").write_text("no section\n")
    assert "UV_INDEX" not in told()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("Resolved 3\nerror: No solution\n  ╰─▶ Because a", "No solution Because a"),
        ("", "uv ended with status 1 and said nothing"),
        ("  × Failed\nhint: do this\n", "Failed"),
    ],
)
def test_a_reason_is_a_line(said: str, reason: str) -> None:
    assert uv.reason(Done(1, said, 0.0)) == reason


def test_a_long_reason_keeps_what_failed_and_why() -> None:
    reason = uv.reason(Done(1, "what failed\n" + "x\n" * 5000 + "why", 0.0))
    assert reason.startswith("what failed")
    assert reason.endswith("why")
    assert len(reason) < 700
