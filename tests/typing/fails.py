"""What type checkers must refuse: each line that ends in `# error`."""

import genesis

x = genesis.ones(2, 3)

genesis.sofmax(x)  # error
x.view("a")  # error
x.add()  # error
genesis.add(x, "1")  # error
x.clamp(low=0)  # error
genesis.div(x, x, rounding_mode=1)  # error
x.addcmul(x)  # error
text: str = x.shape  # error
live: int = genesis.memory_stats().allocated  # error
x.no_such_method()  # error
x.grad = 1  # error
x.backward(retain=True)  # error
