"""Modules that are compared with PyTorch's: how each is made, and the shapes of its inputs.

`record_modules.py` records what PyTorch does with them; `test_nn_classes.py` does the same here.
"""

# (how it is made, shapes of its inputs; a list of two integers (shape, limit) is of integers)
CASES = [
    ("Linear(5, 3)", [(2, 5)]),
    ("Linear(5, 3, bias=False)", [(3, 2, 5)]),
    ("Bilinear(2, 3, 4)", [(5, 2), (5, 3)]),
    ("Identity(3, unused=1)", [(2, 3)]),
    ("Flatten()", [(2, 3, 4)]),
    ("Flatten(0, 1)", [(2, 3, 4)]),
    ("Unflatten(1, (2, 3))", [(2, 6)]),
    ("Unflatten(-1, [3, 1])", [(2, 3)]),
    ("Sequential(Linear(3, 4), ReLU(), Linear(4, 2, bias=False))", [(2, 3)]),
    ("ReLU()", [(7,)]),
    ("ReLU(inplace=True)", [(7,)]),
    ("ReLU6()", [(7,)]),
    ("LeakyReLU(0.3)", [(7,)]),
    ("LeakyReLU(0.3, True)", [(7,)]),
    ("RReLU(0.2, 0.2)", [(7,)]),
    ("ELU(0.7)", [(7,)]),
    ("CELU(0.7)", [(7,)]),
    ("SELU()", [(7,)]),
    ("GELU()", [(7,)]),
    ("GELU('tanh')", [(7,)]),
    ("SiLU()", [(7,)]),
    ("Mish()", [(7,)]),
    ("Hardswish()", [(7,)]),
    ("Hardsigmoid()", [(7,)]),
    ("Hardtanh(-0.4, 0.6)", [(7,)]),
    ("Hardshrink(0.4)", [(7,)]),
    ("Softshrink(0.4)", [(7,)]),
    ("Tanhshrink()", [(7,)]),
    ("Softsign()", [(7,)]),
    ("Softplus(2.0, 1.0)", [(7,)]),
    ("Threshold(0.2, 5.0)", [(7,)]),
    ("Sigmoid()", [(7,)]),
    ("LogSigmoid()", [(7,)]),
    ("Tanh()", [(7,)]),
    ("GLU(0)", [(4, 3)]),
    ("Softmax(1)", [(2, 3)]),
    ("Softmin(0)", [(2, 3)]),
    ("LogSoftmax(-1)", [(2, 3)]),
    ("Softmax2d()", [(2, 3, 1, 2)]),
    ("PReLU()", [(7,)]),
    ("PReLU(3, 0.4)", [(2, 3, 2)]),
    ("LayerNorm(5)", [(3, 5)]),
    ("LayerNorm((2, 3), eps=0.1, bias=False)", [(2, 2, 3)]),
    ("LayerNorm(5, elementwise_affine=False)", [(3, 5)]),
    ("RMSNorm(5, eps=0.1)", [(3, 5)]),
    ("RMSNorm([2, 3])", [(2, 2, 3)]),
    ("GroupNorm(2, 4)", [(2, 4, 3)]),
    ("GroupNorm(2, 4, 0.1, False)", [(2, 4, 3)]),
    ("LocalResponseNorm(2, 0.5, 0.6, 2.0)", [(1, 4, 3)]),
    ("BatchNorm1d(3)", [(4, 3)]),
    ("BatchNorm1d(3, 0.1, 0.3, bias=False)", [(2, 3, 2)]),
    ("BatchNorm1d(3, momentum=None)", [(4, 3)]),
    ("BatchNorm2d(3, affine=False)", [(2, 3, 2, 2)]),
    ("BatchNorm2d(2, track_running_stats=False)", [(2, 2, 2, 2)]),
    ("BatchNorm3d(2)", [(2, 2, 1, 2, 2)]),
    ("BatchNorm2d(3).eval()", [(2, 3, 2, 2)]),
    ("InstanceNorm1d(3)", [(2, 3, 4)]),
    ("InstanceNorm1d(3, affine=True)", [(3, 4)]),
    ("InstanceNorm2d(3, track_running_stats=True)", [(2, 3, 2, 2)]),
    ("InstanceNorm3d(2)", [(1, 2, 2, 2, 2)]),
    ("Dropout(0.0)", [(5,)]),
    ("Dropout(0.4).eval()", [(5,)]),
    ("Dropout1d(1.0)", [(2, 3, 2)]),
    ("Dropout2d(0.4).eval()", [(1, 2, 2, 2)]),
    ("Dropout3d(1.0)", [(1, 2, 1, 2, 2)]),
    ("AlphaDropout(0.4).eval()", [(5,)]),
    ("FeatureAlphaDropout(0.4).eval()", [(1, 5)]),
    ("Embedding(7, 3)", [[(2, 4), 7]]),
    ("Embedding(7, 3, padding_idx=-2)", [[(9,), 7]]),
    ("Embedding(7, 3, padding_idx=2, max_norm=0.5, norm_type=1.0)", [[(9,), 7]]),
    ("Embedding(7, 3, scale_grad_by_freq=True)", [[(9,), 7]]),
    ("EmbeddingBag(7, 3, mode='sum')", [[(2, 4), 7]]),
    ("EmbeddingBag(7, 3, padding_idx=1)", [[(2, 4), 7]]),
    ("Conv1d(2, 3, 3)", [(2, 2, 5)]),
    ("Conv1d(2, 4, 2, stride=2, padding=1, dilation=2, groups=2, bias=False)", [(1, 2, 6)]),
    ("Conv1d(2, 3, 3, padding='same', padding_mode='circular')", [(1, 2, 5)]),
    ("Conv2d(2, 3, (2, 3))", [(1, 2, 3, 4)]),
    ("Conv2d(2, 2, 3, padding=(0, 1), padding_mode='reflect')", [(2, 3, 4)]),
    ("Conv2d(1, 1, 2, padding='valid', padding_mode='replicate')", [(1, 1, 3, 3)]),
    ("Conv3d(1, 2, 2)", [(1, 1, 2, 3, 2)]),
    ("ConvTranspose1d(2, 3, 3, stride=2)", [(1, 2, 3)]),
    ("ConvTranspose2d(2, 2, 2, 2, 1, 1, 2, True, 2)", [(1, 2, 2, 3)]),
    ("ConvTranspose3d(1, 1, 2)", [(1, 1, 1, 2, 2)]),
    ("MaxPool1d(2)", [(1, 2, 5)]),
    ("MaxPool1d(3, 2, 1, 1, ceil_mode=True)", [(1, 2, 6)]),
    ("MaxPool2d((2, 1), stride=1)", [(1, 1, 3, 3)]),
    ("MaxPool3d(2)", [(1, 1, 2, 2, 4)]),
    ("AvgPool1d(2, 1, 1)", [(1, 2, 3)]),
    ("AvgPool2d(2, ceil_mode=True, count_include_pad=False)", [(1, 1, 3, 3)]),
    ("AvgPool2d((1, 2), divisor_override=3)", [(1, 1, 2, 4)]),
    ("AvgPool3d(2)", [(1, 1, 2, 2, 4)]),
    ("LPPool1d(2, 2, stride=1)", [(1, 2, 4)]),
    ("LPPool2d(3, (2, 1), ceil_mode=True)", [(1, 1, 3, 2)]),
    ("LPPool3d(1.5, 2)", [(1, 1, 2, 2, 3)]),
    ("AdaptiveAvgPool1d(3)", [(1, 2, 5)]),
    ("AdaptiveAvgPool2d((2, None))", [(1, 1, 3, 2)]),
    ("AdaptiveAvgPool3d(1)", [(1, 1, 2, 2, 3)]),
    ("AdaptiveMaxPool1d(2)", [(1, 2, 5)]),
    ("AdaptiveMaxPool2d((None, 1))", [(1, 1, 2, 3)]),
    ("AdaptiveMaxPool3d((1, 1, 2))", [(1, 1, 2, 2, 3)]),
    *[
        (f"{kind}Pad{dims}d({sides}{more})", [(1, 1, 3, 4, 3)[: dims + 2]])
        for kind, more in (
            ("Constant", ", 1.5"),
            ("Zero", ""),
            ("Reflection", ""),
            ("Replication", ""),
            ("Circular", ""),
        )
        for dims, sides in ((1, 2), (2, (1, 0, 2, 1)), (3, 1))
    ],
    ("Upsample(scale_factor=2)", [(1, 1, 3)]),
    ("Upsample((3, 5), mode='bilinear', align_corners=True)", [(1, 1, 2, 3)]),
    ("Upsample(scale_factor=(1.5, 2.0), mode='bilinear')", [(1, 1, 2, 3)]),
    ("UpsamplingNearest2d(scale_factor=2)", [(1, 1, 2, 2)]),
    ("UpsamplingBilinear2d((3, 3))", [(1, 1, 2, 2)]),
    ("PixelShuffle(2)", [(1, 8, 1, 2)]),
    ("PixelUnshuffle(2)", [(1, 2, 2, 4)]),
    ("ChannelShuffle(2)", [(1, 6, 1, 2)]),
    ("Unfold((2, 1), dilation=1, padding=1, stride=(1, 2))", [(1, 2, 2, 2)]),
    ("Fold((3, 3), 2)", [(1, 4, 4)]),
    ("PairwiseDistance(1.0, 0.1, True)", [(3, 4), (3, 4)]),
    ("CosineSimilarity(0, 0.1)", [(3, 4), (3, 4)]),
]

# Modules whose text alone is compared.
TEXTS = [
    "MaxUnpool1d(2)",
    "MaxUnpool2d((2, 3), 2, 1)",
    "MaxUnpool3d(2, padding=1)",
    "Module()",
    "Sequential()",
    "Sequential(Linear(1, 2), Sequential(ReLU(), Identity()), ModuleList())",
    "Sequential(*[Linear(1, 1)] * 4)[1:3]",
    "ModuleList([Linear(2, 2), Linear(2, 2), ReLU(), Linear(2, 2)])",
    "ModuleList([Sequential(Linear(2, 2), ReLU()) for _ in range(3)])",
    "ModuleDict({'a': Linear(1, 2), 'b': None})",
    "ModuleDict([('x', ReLU()), ['y', Tanh()]])",
    "Embedding(3, 4, sparse=True)",
    "ConvTranspose2d(4, 4, 3, output_padding=1, stride=2, dilation=2)",
]


def numbers(count, start):
    """Numbers of both signs that are the same everywhere; no two that follow are equal."""
    return [((i + start) * 7 % 23 - 11) / 8 for i in range(count)]


def count_of(shape):
    """The product of sizes."""
    count = 1
    for size in shape:
        count *= size
    return count


def run(package, made, shapes):
    """Outputs and gradients of a module of a package, torch or genesis, as lists."""
    module = eval(made, dict(vars(package.nn)))
    tensor = package.tensor
    for place, one in enumerate([*module.parameters(), *module.buffers()]):
        if one.dtype == package.float32:
            values = tensor(numbers(count_of(one.shape), place)).reshape(tuple(one.shape))
            one.data.copy_(values.abs() if one.dim() == 1 else values)
    inputs = []
    for place, shape in enumerate(shapes):
        if isinstance(shape, list):
            sizes, limit = shape
            values = [i * 5 % limit for i in range(count_of(sizes))]
            inputs.append(tensor(values).reshape(sizes))
        else:
            values = tensor(numbers(count_of(shape), 3 + place)).reshape(shape)
            inputs.append(values.requires_grad_())
    used = [one * 1 if one.dtype == package.float32 else one for one in inputs]
    output = module(*used)
    if output.requires_grad:
        scale = tensor(numbers(count_of(output.shape), 5)).reshape(tuple(output.shape))
        (output * scale).sum().backward()
    grads = [
        None if one.grad is None else one.grad.flatten().tolist()
        for one in [*inputs, *module.parameters()]
        if one.dtype == package.float32
    ]
    buffers = [one.flatten().tolist() for one in module.buffers()]
    return {
        "output": [list(output.shape), output.detach().flatten().tolist()],
        "grads": grads,
        "buffers": buffers,
    }


def described(package, made):
    """The text of a module, and the names and shapes of its state."""
    module = eval(made, dict(vars(package.nn)))
    state = {name: list(one.shape) for name, one in module.state_dict().items()}
    return {"text": repr(module).replace("torch.", "genesis."), "state": state}
