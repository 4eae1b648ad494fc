"""JAX on the CPU: programs that XLA compiles at run time, and runs in threads of its own."""

from _build import left_out
from _clock import Clock

try:
    import jax
except ImportError:
    left_out("jax")
import jax.numpy as jnp

x = jnp.ones((400, 400))


@jax.jit
def step(x: jax.Array) -> jax.Array:
    return jnp.tanh(x @ x / 400.0) + jnp.sin(x)


def main() -> None:
    step(x).block_until_ready()  # compiles
    clock = Clock()
    while clock.go_on():
        with clock.part("python"):
            sum(i % 7 for i in range(200_000))
        with clock.waiting():  # XLA's own threads work
            step(x).block_until_ready()
    clock.tell()


if __name__ == "__main__":
    main()
