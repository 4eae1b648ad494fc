"""Vectorised environments: native ones in Rust, and all others through Gymnasium."""

from rlox.env.vec_env import VecEnv

__all__ = ["VecEnv"]
