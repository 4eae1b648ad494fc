"""Vectorised environments: native ones in Rust, any other through Gymnasium."""

from rlox.env.vec_env import VecEnv

__all__ = ["VecEnv"]
