"""MultivariateNormal, where PyTorch has it."""

from genesis.distributions.independent import MultivariateNormal

__all__ = ["MultivariateNormal"]
