"""A Rust extension without debug information, as wheels come: pydantic's core validates."""

from _build import left_out
from _clock import Clock

try:
    from pydantic_core import SchemaValidator, core_schema
except ImportError:
    left_out("pydantic-core")

schema = core_schema.list_schema(
    core_schema.list_schema(core_schema.float_schema(ge=0.0), max_length=100)
)
validator = SchemaValidator(schema)
text = (
    "[" + ",".join("[" + ",".join(f"{i}.{j}" for j in range(100)) + "]" for i in range(300)) + "]"
)


def main() -> None:
    clock = Clock()
    while clock.go_on():
        with clock.part("python"):
            sum(i * i % 7 for i in range(100_000))
        with clock.part("native"):
            made = [validator.validate_json(text) for _ in range(4)]
        with clock.part("python"):  # it is the interpreter that frees them
            made.clear()
    clock.tell()


if __name__ == "__main__":
    main()
