"""The one reader of files: whatever is in one, it is told in a line, and never a traceback."""

from pathlib import Path

import msgspec
import pytest

from rlox_opt.system.files import NotReadError
from rlox_opt.system.schema import Count, Real, read

NINES = b"9" * 400


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    number: Real
    counts: dict[str, Count] = {}


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    rows: list[Inner]


JSON = [
    (b"", "is not JSON: "),
    (b"[", "is not JSON: "),
    (b'{"rows": [', "is not JSON: "),
    (b"null", "is None; it takes `object`"),
    (b"[" * 100_000, "is not JSON: "),
    (b"[" * 100_000 + b"]" * 100_000, "is not JSON: maximum recursion depth"),
    (b'{"rows": ' + b"[" * 800 + b"]" * 800 + b"}", "it takes `object`"),
    (b"\xff", "is not UTF-8: byte 0"),
    (b'\xef\xbb\xbf{"rows": []}', "save it as UTF-8 without one"),
    (b'{"rows": [], "\\ud800": 1}', "is not JSON: "),
    (b'{"rows": [{"number": NaN}]}', "is not JSON: "),
    (b'{"rows": [{"number": 1e999}]}', "out of range"),
    (b'{"rows": [{"number": ' + NINES + b"}]}", r"`rows\[0\].number` is 999"),
    (b'{"rows": [{"number": ' + NINES * 30 + b"}]}", "out of range"),
    (b'{"rows": [{"number": true}]}', r"`rows\[0\].number` is True; it takes `float`$"),
    (b'{"rows": [{}]}', r"the key `rows\[0\].number` is missing$"),
    (b'{"rows": [], "row": 1}', "unknown key `row`; it may be one of rows$"),
    (
        b'{"rows": [{"number": 1, "counts": {"a": 1, "b.c": -1}}]}',
        r"`rows\[0\].counts.b\.c` is -1; it takes `int` >= 0$",
    ),
]


@pytest.mark.parametrize(("content", "says"), JSON)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(NotReadError, match=says) as told:
        read(path, Outer)
    assert str(told.value).startswith(f"{path}: ")
    assert len(told.value.why) < 300


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("rows = [", "is not TOML: "),
        ("rows = " + "[" * 50_000, "is not TOML: "),
        (f"rows = {'9' * 5000}", "is not TOML: "),
        ("rows = 1979-05-27", r"`rows` is datetime.date\(1979, 5, 27\); it takes `array`"),
        ("[[rows]]\nnumber = nan", r"`rows\[0\].number` is nan; it takes"),
        ("[[rows]]\nnumber = 1e999", r"`rows\[0\].number` is inf; it takes"),
        (f"[[rows]]\nnumber = {'9' * 400}", r"`rows\[0\].number` is 999"),
    ],
)
def test_the_same_of_toml(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "file.toml"
    path.write_text(content)
    with pytest.raises(NotReadError, match=says):
        read(path, Outer)
