from rlox._core import build_info

__all__ = ["build_info"]
