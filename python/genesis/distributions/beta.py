"""Beta, where PyTorch has it."""

from genesis.distributions.gamma import Beta

__all__ = ["Beta"]
