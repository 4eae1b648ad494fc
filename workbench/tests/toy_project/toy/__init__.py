"""What is measured: says how it was built, and does nothing."""

from toy._core import build_info

__all__ = ["build_info"]
