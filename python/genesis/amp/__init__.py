"""Mixed precision: operations in half precision where that is safe."""

__all__: list[str] = []
