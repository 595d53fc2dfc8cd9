"""Handles of hooks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import OrderedDict
    from typing import Any

__all__ = ["RemovableHandle"]


class RemovableHandle:
    """What removes a hook: the functions that register one give it.

    Parameters
    ----------
    hooks : OrderedDict
        Hooks by the numbers of their handles. The handle does not keep it alive.
    extra : sequence of OrderedDict
        Others that have an entry for the hook.

    Examples
    --------
    >>> import genesis
    >>> module = genesis.nn.Identity()
    >>> with module.register_forward_hook(lambda module, args, output: output + 1):
    ...     module(1)
    2
    >>> module(1)
    1
    """

    next_id = 0

    def __init__(self, hooks: OrderedDict[int, Any], *extra: OrderedDict[int, Any]) -> None:
        from weakref import ref

        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        self._places = tuple(ref(one) for one in (hooks, *extra))

    def remove(self) -> None:
        """The hook is called no more."""
        for place in self._places:
            hooks = place()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: object) -> None:
        self.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.id, tuple(place() for place in self._places)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        from collections import OrderedDict
        from weakref import ref

        self.id, places = state
        self._places = tuple(ref(OrderedDict() if one is None else one) for one in places)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
