"""R16: what stands for a product with a thin side is that product."""

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.fx.experimental.proxy_tensor import make_fx

from rlox.learner.compiled_products import ProductsByShape

aten = torch.ops.aten
PRODUCTS = {aten.mm.default, aten.addmm.default}


def rewritten(function, *tensors):
    """Its graph after the pass, and the shapes of the products that are left in it."""
    module = make_fx(function, tracing_mode="fake")(*tensors)
    ProductsByShape()(module.graph)
    module.graph.lint()
    module.recompile()
    left = [node for node in module.graph.nodes if node.target in PRODUCTS]
    shapes = [tuple(arg.meta["val"].shape for arg in node.args[-2:]) for node in left]
    return module, shapes


def both(bias, a, b):
    return a @ b, torch.addmm(bias, a, b.t().contiguous().t())


def matrices(rows, summands, columns, dtype=torch.float32):
    rng = torch.Generator().manual_seed(rows + 7 * summands + 31 * columns)
    shapes = (columns,), (rows, summands), (summands, columns)
    return [torch.randn(shape, generator=rng).to(dtype) for shape in shapes]


sides = st.integers(1, 12) | st.sampled_from([64, 100])


@settings(max_examples=30)
@given(sides, sides, sides)
@example(256, 256, 1)  # a head of one output
@example(256, 1, 256)  # its gradient
@example(1, 256, 256)  # and that of its weights
@example(256, 256, 4)  # those of a first layer
@example(64, 2, 64)
def test_a_rewritten_graph_gives_the_same(rows, summands, columns):
    tensors = matrices(rows, summands, columns)
    module, _ = rewritten(both, *tensors)
    for found, expected in zip(module(*tensors), both(*tensors), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)
        assert found.shape == (rows, columns)


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        ((256, 256, 1), []),
        ((256, 1, 256), []),
        ((1, 256, 256), []),
        ((256, 2, 64), []),
        ((256, 256, 4), [((4, 256), (256, 256))] * 2),  # the other way round
        ((256, 3, 256), [((256, 3), (3, 256))] * 2),  # as they were
        ((256, 64, 64), [((256, 64), (64, 64))] * 2),
    ],
)
def test_only_products_with_a_thin_side_are_made_of_others(sizes, left):
    assert rewritten(both, *matrices(*sizes))[1] == left


def test_a_bias_is_added_apart():
    module, _ = rewritten(torch.addmm, *matrices(256, 64, 64))
    found = [node.target for node in module.graph.nodes if node.op == "call_function"]
    assert found == [aten.mm.default, aten.add.Tensor]


def test_products_in_another_precision_are_left_alone():
    assert len(rewritten(both, *matrices(8, 8, 1, torch.float64))[1]) == 2


def test_a_scaled_product_is_left_alone():
    bias, a, b = matrices(8, 8, 1)
    module, left = rewritten(lambda *x: torch.addmm(*x, beta=0.5), bias, a, b)
    assert len(left) == 1
    torch.testing.assert_close(module(bias, a, b), torch.addmm(bias, a, b, beta=0.5))
