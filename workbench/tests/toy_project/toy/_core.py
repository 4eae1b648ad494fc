"""What would be an extension."""

from types import SimpleNamespace
from typing import Any


def build_info() -> dict[str, Any]:
    """As an extension in Rust says it."""
    return {
        "version": "0.1.0", "commit": "0" * 40, "profile": "release", "features": ["opt-p5"],
        "rustc": "rustc 1.90.0",
    }  # fmt: skip


pairs = SimpleNamespace(
    catalogue=lambda: [("P5", "sample_256", [{"n": 1_000}]), ("P5", "set_256", [{"n": 1_000}])]
)
