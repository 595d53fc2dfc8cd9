"""State dicts of modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from genesis import _C
from genesis._grad_mode import no_grad
from genesis.nn.parameter import Parameter
from genesis.utils.hooks import RemovableHandle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__: list[str] = []

_EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict()`` gives: keys that were missing, and keys that nobody knows."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )

    __str__ = __repr__


def _listed(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)


class State:
    """The part of Module that is about state dicts."""

    _version = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    # ---- hooks ----

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, state_dict, prefix, local_metadata)`` at the end of state_dict()."""
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = (hook, True)
        return handle

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The same for a hook that may give another dict, which counts for the root."""
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = (hook, False)
        return handle

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, prefix, keep_vars)`` before the state of the module is collected."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call a function before the state of the module is loaded.

        It is ``hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys, error_msgs)``, and may change `state_dict`, which is a copy.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        """The same; without `with_module` the hook does not get the module."""
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = (hook, with_module)
        return handle

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(module, incompatible_keys)`` after loading; it may change the lists."""
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle

    # ---- what is beside tensors ----

    def get_extra_state(self) -> Any:
        """What state_dict() has beside tensors: for classes that define it."""
        raise RuntimeError(
            f"get_extra_state: {type(self).__name__} has no extra state: the class must define it"
        )

    def set_extra_state(self, state: Any) -> None:
        """Take what get_extra_state() gave: for classes that define it."""
        raise RuntimeError(
            f"set_extra_state: {type(self).__name__} has no extra state: the class must define it"
        )

    # ---- saving ----

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        """Put the state of this module, without its children, into a dict."""
        for name, one in self._persistent_tensors().items():
            destination[prefix + name] = one if keep_vars else one.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def _persistent_tensors(self) -> dict[str, Any]:
        """Parameters and buffers that are in the state, by name."""
        buffers = {
            name: one
            for name, one in self._buffers.items()
            if name not in self._non_persistent_buffers_set
        }
        return {
            name: one for name, one in {**self._parameters, **buffers}.items() if one is not None
        }

    def state_dict(
        self,
        *args: Any,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """The parameters and persistent buffers of the module and its children, by name.

        Parameters
        ----------
        *args :
            The same by place, which PyTorch gives up.
        destination : dict, optional
            Where they are put; None: a new dict.
        prefix : str
            What each name starts with.
        keep_vars : bool
            Whether they are the tensors themselves, else what detach() gives.

        Examples
        --------
        >>> import genesis
        >>> list(genesis.nn.Sequential(genesis.nn.Linear(2, 3)).state_dict())
        ['0.weight', '0.bias']
        """
        if args:
            import warnings

            warnings.warn(
                "Positional args are being deprecated, use kwargs instead.",
                FutureWarning,
                stacklevel=2,
            )
            destination, prefix, keep_vars = (
                *args,
                *(destination, prefix, keep_vars)[len(args) :],
            )
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars
                )
        for hook, is_public in self._state_dict_hooks.values():
            given = hook(self, destination, prefix, metadata)
            if given is not None and is_public:
                raise RuntimeError("state_dict post-hook must return None")
            destination = destination if given is None else given
        return destination

    # ---- loading ----

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Take the state of this module, without its children, from a dict."""
        for hook, with_module in self._load_state_dict_pre_hooks.values():
            first = (self,) if with_module else ()
            hook(
                *first,
                state_dict,
                prefix,
                local_metadata,
                strict,
                missing_keys,
                unexpected_keys,
                error_msgs,
            )
        own = self._persistent_tensors()
        is_assigned = local_metadata.get("assign_to_params_buffers", False)
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                message = self._load_one(name, tensor, state_dict[key], key, is_assigned)
                error_msgs += [message] if message else []
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA
        if type(self).set_extra_state is not State.set_extra_state:
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first, _, rest = key[len(prefix) :].partition(".")
                    if first not in (self._modules if rest else own):
                        unexpected_keys.append(key)

    def _load_one(self, name: str, tensor: Any, given: Any, key: str, is_assigned: bool) -> str:
        """Take one tensor; what is wrong, or nothing."""
        if not isinstance(given, _C.Tensor):
            return (
                f'While copying the parameter named "{key}", expected genesis.Tensor from '
                f"checkpoint but received {type(given)}"
            )
        if tensor.ndim == 0 and given.shape == (1,):
            given = given[0]
        if given.shape != tensor.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {tensor.shape}."
            )
        try:
            if not is_assigned:
                with no_grad():
                    tensor.copy_(given)
                return ""
            if isinstance(tensor, Parameter) and not isinstance(given, Parameter):
                given = Parameter(given, tensor.requires_grad)
            elif isinstance(tensor, Parameter):
                given.requires_grad_(tensor.requires_grad)
            setattr(self, name, given)
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{tensor.shape} and whose dimensions in the checkpoint are {given.shape}, "
                f"an exception occurred : {error.args}."
            )
        return ""

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Take the parameters and buffers of the module and its children from a dict.

        Parameters
        ----------
        state_dict : mapping
            What ``state_dict()`` gave.
        strict : bool
            Whether keys that are missing, or that the module does not know, are an error.
        assign : bool
            Whether the tensors become those of the module, with their dtype and device; else they
            are copied into those that it has.

        Returns
        -------
        IncompatibleKeys
            Lists of ``missing_keys`` and ``unexpected_keys``.

        Examples
        --------
        >>> import genesis
        >>> one, other = genesis.nn.Linear(2, 3), genesis.nn.Linear(2, 3)
        >>> one.load_state_dict(other.state_dict())
        <All keys matched successfully>
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        copied = OrderedDict(state_dict)  # hooks may change it
        if metadata is not None:
            copied._metadata = metadata  # type: ignore[attr-defined]

        def load(module: Any, part: dict[str, Any], prefix: str) -> None:
            local = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local = {**local, "assign_to_params_buffers": True}
            module._load_from_state_dict(part, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    start = f"{prefix}{name}."
                    inner = {key: one for key, one in part.items() if key.startswith(start)}
                    load(child, inner, start)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, IncompatibleKeys(missing, unexpected)) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not "
                        "expected to return new values, if incompatible_keys need to be modified, "
                        "it should be done inplace."
                    )

        load(self, copied, "")
        if strict and unexpected:
            errors.insert(0, f"Unexpected key(s) in state_dict: {_listed(unexpected)}. ")
        if strict and missing:
            errors.insert(0, f"Missing key(s) in state_dict: {_listed(missing)}. ")
        if errors:
            raise RuntimeError(
                f"Error(s) in loading state_dict for {type(self).__name__}:\n\t"
                + "\n\t".join(errors)
            )
        return IncompatibleKeys(missing, unexpected)
