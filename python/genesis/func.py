"""Models as functions of their parameters.

>>> import genesis
>>> from genesis.func import functional_call
>>> layer = genesis.nn.Linear(1, 1, bias=False)
>>> functional_call(layer, {"weight": genesis.tensor([[2.0]])}, genesis.tensor([3.0]))
tensor([6.])
"""

from genesis.nn.utils.stateless import functional_call

__all__ = ["functional_call"]
