"""Distributions whose densities, entropies and divergences are compared with PyTorch's."""

from __future__ import annotations

A = [[0.5, 1.5, 2.5], [1.0, 0.25, 3.0]]
B = [[2.0, 0.75, 1.0], [0.5, 1.25, 4.0]]
PROBS = [[0.1, 0.5, 0.9], [0.25, 0.75, 1.0]]
OTHER = [[0.2, 0.5, 0.6], [0.5, 0.5, 0.5]]
LOC = [[-1.0, 0.5, 2.0], [0.0, 3.0, -2.0]]
SIMPLEX = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
ONES = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]
COVARIANCES = [[[2.0, 0.5], [0.5, 1.0]], [[1.0, -0.25], [-0.25, 3.0]]]
TRIANGLES = [[[1.5, 0.0], [0.5, 1.0]], [[1.0, 0.0], [-0.25, 2.0]]]
VECTORS = [[1.0, -1.0], [0.5, 2.0]]

# Name: the class, the parameters of two distributions, a value.
CASES = {
    "normal": ("Normal", {"loc": LOC, "scale": A}, {"loc": B, "scale": B}, LOC),
    "normal of numbers": ("Normal", {"loc": 1, "scale": 2.5}, {"loc": 0.0, "scale": 1.0}, A),
    "uniform": ("Uniform", {"low": LOC, "high": 4.0}, {"low": -3.0, "high": 4.5}, 3.5),
    "exponential": ("Exponential", {"rate": A}, {"rate": B}, B),
    "laplace": ("Laplace", {"loc": LOC, "scale": A}, None, B),
    "gamma": (
        "Gamma",
        {"concentration": A, "rate": B},
        {"concentration": B, "rate": A},
        PROBS,
    ),
    "beta": (
        "Beta",
        {"concentration1": A, "concentration0": B},
        {"concentration1": B, "concentration0": 2.0},
        OTHER,
    ),
    "dirichlet": ("Dirichlet", {"concentration": A}, {"concentration": B}, SIMPLEX),
    "bernoulli": ("Bernoulli", {"probs": PROBS}, {"probs": OTHER}, ONES),
    "bernoulli of logits": ("Bernoulli", {"logits": LOC}, {"logits": A}, ONES),
    "categorical": ("Categorical", {"probs": A}, {"probs": B}, [2.0, 0.0]),
    "categorical of logits": ("Categorical", {"logits": LOC}, {"logits": A}, [1.0, 2.0]),
    "one-hot": ("OneHotCategorical", {"logits": LOC}, {"probs": A}, [0.0, 1.0, 0.0]),
    "vectors": (
        "MultivariateNormal",
        {"loc": VECTORS, "covariance_matrix": COVARIANCES},
        {"loc": [0.0, 0.0], "scale_tril": TRIANGLES},
        [0.5, 0.5],
    ),
    "vectors by precision": (
        "MultivariateNormal",
        {"loc": [0.0, 1.0], "precision_matrix": COVARIANCES},
        {"loc": VECTORS, "covariance_matrix": COVARIANCES},
        VECTORS,
    ),
}
MOMENTS = ("mean", "variance", "stddev")


def flat(tensor):
    return [round(float(one), 6) for one in tensor.detach().double().reshape(-1).tolist()]


def results(lib, name):
    """Densities, the gradient of their sum, moments, and the divergence, as lists."""
    kind, first, second, value = CASES[name]
    made = getattr(lib.distributions, kind)

    def tensors(given, requires_grad=False):
        return {
            key: lib.tensor(one, requires_grad=requires_grad) if isinstance(one, list) else one
            for key, one in given.items()
        }

    given = tensors(first, requires_grad=True)
    p = made(**given)
    density = p.log_prob(lib.tensor(value))
    out = {"log_prob": flat(density), "entropy": flat(p.entropy())}
    leaves = [one for one in given.values() if isinstance(one, lib.Tensor)]
    if leaves:
        density.sum().backward()
        out["gradients"] = [one for leaf in leaves for one in flat(leaf.grad)]
    if kind != "Categorical":
        out.update({moment: flat(getattr(p, moment)) for moment in MOMENTS})
    if second is not None:
        out["kl"] = flat(lib.distributions.kl_divergence(p, made(**tensors(second))))
    return out
