"""What is done to the parameters of modules."""

from importlib.util import find_spec

from genesis.nn.utils import parametrizations, parametrize, stateless
from genesis.nn.utils.convert import parameters_to_vector, vector_to_parameters
from genesis.nn.utils.spectral_norm import remove_spectral_norm, spectral_norm
from genesis.nn.utils.weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "remove_spectral_norm",
    "remove_weight_norm",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

if find_spec("genesis.nn.utils.clip_grad") is not None:
    from genesis.nn.utils import clip_grad

    __all__ += clip_grad.__all__  # noqa: PLE0605
    globals().update({name: getattr(clip_grad, name) for name in clip_grad.__all__})
if find_spec("genesis.nn.utils.rnn") is not None:
    from genesis.nn.utils import rnn

    __all__ += ["rnn"]
