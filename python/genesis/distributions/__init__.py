"""Probability distributions, as reinforcement learning and variational methods use them."""

from genesis.distributions.bernoulli import Bernoulli
from genesis.distributions.categorical import Categorical, OneHotCategorical
from genesis.distributions.distribution import Distribution
from genesis.distributions.exponential import Exponential, Laplace
from genesis.distributions.gamma import Beta, Dirichlet, Gamma
from genesis.distributions.independent import Independent, MultivariateNormal
from genesis.distributions.kl import kl_divergence, register_kl
from genesis.distributions.normal import Normal
from genesis.distributions.transformed_distribution import LogNormal, TransformedDistribution
from genesis.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    SigmoidTransform,
    TanhTransform,
    Transform,
)
from genesis.distributions.uniform import Uniform

__all__ = [
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Categorical",
    "ComposeTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "Gamma",
    "Independent",
    "Laplace",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "OneHotCategorical",
    "SigmoidTransform",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "kl_divergence",
    "register_kl",
]
