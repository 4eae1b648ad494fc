"""A regression that no list has."""

from asv_bench.injected.regressions import Regression

TOY = Regression(
    id="toy", kind="a toy", bound="compute", benchmark="toys.time_work", affects="work",
    file="crates/toy.rs", probe=100, layer="rust", function=r"toy\.rs:(work|extra)$",
    find="work();\n", replace="work(); extra({k});\n",
)  # fmt: skip
