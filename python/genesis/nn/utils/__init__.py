"""What is done to the parameters of modules."""

from importlib.util import find_spec

from genesis.nn.utils.convert import parameters_to_vector, vector_to_parameters

__all__ = ["parameters_to_vector", "vector_to_parameters"]

if find_spec("genesis.nn.utils.clip_grad") is not None:
    from genesis.nn.utils import clip_grad

    __all__ += clip_grad.__all__  # noqa: PLE0605
    globals().update({name: getattr(clip_grad, name) for name in clip_grad.__all__})
if find_spec("genesis.nn.utils.rnn") is not None:
    from genesis.nn.utils import rnn

    __all__ += ["rnn"]
