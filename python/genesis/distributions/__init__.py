"""Probability distributions, as reinforcement learning and variational methods use them."""

from genesis.distributions.bernoulli import Bernoulli
from genesis.distributions.categorical import Categorical, OneHotCategorical
from genesis.distributions.distribution import Distribution
from genesis.distributions.exponential import Exponential, Laplace
from genesis.distributions.gamma import Beta, Dirichlet, Gamma
from genesis.distributions.independent import Independent, MultivariateNormal
from genesis.distributions.kl import kl_divergence, register_kl
from genesis.distributions.normal import Normal
from genesis.distributions.uniform import Uniform

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Dirichlet",
    "Distribution",
    "Exponential",
    "Gamma",
    "Independent",
    "Laplace",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "Uniform",
    "kl_divergence",
    "register_kl",
]
