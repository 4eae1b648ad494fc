"""R16: the matrix products of compiled updates (R2, R3), in forms that are fast on a CPU.

Libraries are made for large products. A small one takes them up to 20 µs: a head with one output,
the outer product in its gradient, or the first layer's gradient. They also copy a layer's bias into
each row of the result first, and read that result again. Importing this module loads the compiler,
so it is imported only when something is to be compiled.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass, get_hash_for_files
from torch.fx import Graph, Node

aten = torch.ops.aten
FEW = 2  # a product with at most so many summands becomes a sum of outer products
THIN = 8  # a product with at most so many columns is computed transposed,
LONG = 64  # if it has at least so many summands


class ProductsByShape(CustomGraphPass):
    """A pass over Inductor's graphs, for float32 on the CPU, after gradients were added.

    Products with a vector, and those with few summands, become sums, which are fused with the
    operations around them. Those with few columns become `(b' a')'`, for which libraries are
    faster. A bias is added after the product, where the addition is fused with the activation.
    """

    def __call__(self, graph: Graph) -> None:
        for node in graph.nodes:
            if node.target in (aten.mm.default, aten.addmm.default) and not node.kwargs:
                self._rewrite(graph, node)

    def uuid(self) -> Any:
        """The key under which compiled graphs are kept on disk."""
        return get_hash_for_files((__file__,))

    def _rewrite(self, graph: Graph, node: Node) -> None:
        *bias, a, b = (argument for argument in node.args if isinstance(argument, Node))
        one, other = a.meta["val"], b.meta["val"]
        if one.dtype != torch.float32 or one.device.type != "cpu":
            return
        (rows, summands), columns = one.shape, other.shape[1]

        def call(function: Callable[..., Any], *arguments: Any) -> Node:
            new = graph.call_function(function, arguments)
            known = (x.meta["val"] if isinstance(x, Node) else x for x in arguments)
            with one.fake_mode:
                new.meta["val"] = function(*known)
            return new

        def turned(x: Node) -> Node:
            return call(aten.permute.default, x, [1, 0])

        with graph.inserting_before(node):
            if min(rows, columns) == 1 or summands <= FEW:
                each = call(aten.unsqueeze.default, a, 2), call(aten.unsqueeze.default, b, 0)
                product = call(aten.sum.dim_IntList, call(aten.mul.Tensor, *each), [1])
            elif columns <= THIN and columns < rows and summands >= LONG:
                product = turned(call(aten.mm.default, turned(b), turned(a)))
            elif bias:
                product = call(aten.mm.default, a, b)
            else:
                return
            if bias:
                product = call(aten.add.Tensor, product, *bias)
        node.replace_all_uses_with(product)
        graph.erase_node(node)
