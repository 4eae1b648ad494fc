"""The functions of this repository on a stack."""

from projects import HERE
from rlox_opt.history.sides import installed
from rlox_opt.sampling.functions import innermost
from rlox_opt.sampling.samples import Frame

text = installed(HERE)


def test_what_is_inlined_is_named_by_its_line() -> None:
    path = "crates/rlox-core/src/llm/token_kl/baseline.rs"
    lines = (text(path) or "").splitlines()
    line = next(n for n, of in enumerate(lines, 1) if "let d = reference - policy" in of)
    inlined = Frame("_core::llm::compute_token_kl", path, line)
    assert innermost([inlined], text) == f"{path}:k3_sum"
