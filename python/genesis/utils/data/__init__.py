"""Data: sets of samples, the order in which they are taken, and batches of them."""

__all__: list[str] = []
