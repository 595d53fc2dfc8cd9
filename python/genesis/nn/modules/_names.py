"""Names that a class of modules knows.

A class gets a descriptor for each name under which its objects register something: Python finds it
at once, and it looks where ``__getattr__`` would (src/python/python_modules.c). Attributes that
classes have come first, as they do without it.
"""

from __future__ import annotations

from genesis import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []

_NAMES_MOST = 100  # of a class


def _class_has(cls: Any, name: str) -> bool:
    """Whether a class, or one that is derived of it, has an attribute."""
    return any(name in one.__dict__ for one in cls.__mro__) or any(
        _class_has(one, name) for one in cls.__subclasses__()
    )


def offer(cls: Any, name: str, part: int) -> None:
    """Give a class the descriptor of a parameter (0), a buffer (1) or a module (2)."""
    count = cls.__dict__.get("_offered_count", 0)
    if count < _NAMES_MOST and not _class_has(cls, name):
        setattr(cls, name, _C._ModuleAttribute(name, part))
        cls._offered_count = count + 1


def uncover(cls: Any) -> None:
    """Give a class with several bases the attributes that a base's descriptors would hide."""
    seen = [one.__dict__ for one in cls.__mro__]
    for attributes in seen:
        for name, value in list(attributes.items()):
            if isinstance(value, _C._ModuleAttribute):
                found = [one[name] for one in seen if name in one]
                others = [one for one in found if not isinstance(one, _C._ModuleAttribute)]
                if others:
                    setattr(cls, name, others[0])
