"""The parts of Genesis that belong to one kind of device."""
