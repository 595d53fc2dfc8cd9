"""What has no gradient, and why. PyTorch has none either, or there are no floating numbers.

A name alone stands for a function, the method, and the method in place.
"""

from __future__ import annotations

NONE = {
    "comparisons and tests: true or false": """
        all allclose any eq equal ge greater greater_equal gt isclose isfinite isin isinf isnan
        isneginf isposinf le less less_equal logical_and logical_not logical_or logical_xor lt ne
        not_equal signbit Tensor.__eq__ Tensor.__ge__ Tensor.__gt__ Tensor.__le__ Tensor.__lt__
        Tensor.__ne__ Tensor.__contains__ Tensor.__bool__""",
    "integers: indices and counts": """
        argmax argmin argsort argwhere bincount bucketize count_nonzero histc histogram nonzero
        one_hot searchsorted tril_indices triu_indices linalg.matrix_rank""",
    "bits and whole numbers: floating types are refused": """
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor gcd
        lcm Tensor.__and__ Tensor.__iand__ Tensor.__ilshift__ Tensor.__invert__ Tensor.__ior__
        Tensor.__irshift__ Tensor.__ixor__ Tensor.__lshift__ Tensor.__or__ Tensor.__rand__
        Tensor.__rlshift__ Tensor.__ror__ Tensor.__rrshift__ Tensor.__rshift__ Tensor.__rxor__
        Tensor.__xor__""",
    "PyTorch has none: an error here": "heaviside",
    "PyTorch has none": "unique unique_consecutive",
    "random numbers": """
        bernoulli get_rng_state initial_seed manual_seed multinomial normal poisson rand rand_like
        randint randint_like randn randn_like randperm seed set_rng_state Tensor.bernoulli_
        Tensor.exponential_ Tensor.normal_ Tensor.random_ Tensor.uniform_""",
    "made of numbers, or a copy of numbers": """
        arange as_tensor asarray empty empty_like empty_strided eye from_dlpack from_numpy
        frombuffer linspace logspace ones ones_like tensor zeros zeros_like Tensor.new_empty
        Tensor.new_ones Tensor.new_tensor Tensor.new_zeros Tensor.pin_memory load""",
    "the same memory without gradients": """
        Tensor.detach Tensor.detach_ Tensor.data Tensor.__array__ Tensor.__dlpack__
        Tensor.__cuda_array_interface__ Tensor.__dlpack_c_exchange_api__ Tensor.__dlpack_device__
        Tensor.data_ptr Tensor.numpy Tensor.storage Tensor.untyped_storage Tensor._place
        Tensor._storage Tensor.resize_""",
    "a number of Python": """
        Tensor.__complex__ Tensor.__float__ Tensor.__index__ Tensor.__int__ Tensor.item
        Tensor.tolist""",
    "integer types": "Tensor.bool Tensor.byte Tensor.char Tensor.int Tensor.long Tensor.short",
    "what is known of a tensor": """
        broadcast_shapes is_floating_point is_tensor numel Tensor.__len__ Tensor.device Tensor.dim
        Tensor.dtype Tensor.element_size Tensor.get_device Tensor.is_contiguous Tensor.is_cuda
        Tensor.is_leaf Tensor.is_pinned Tensor.is_signed Tensor.itemsize Tensor.nbytes Tensor.ndim
        Tensor.ndimension Tensor.nelement Tensor.shape Tensor.size Tensor.storage_offset
        Tensor.stride Tensor.strides""",
    "settings of mixed precision": """
        autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache
        get_autocast_dtype is_autocast_cache_enabled is_autocast_enabled
        set_autocast_cache_enabled set_autocast_dtype set_autocast_enabled""",
    "what a tensor never is, or always": """
        Tensor.is_complex Tensor.is_cpu Tensor.is_meta Tensor.is_mps Tensor.is_quantized
        Tensor.is_sparse Tensor.layout""",
    "no elements": """
        can_cast check_memory_leaks detailed_memory_stats empty_cache enable_memory_debugging
        enable_memory_profiling flush get_default_device get_default_dtype
        get_float32_matmul_precision get_fusion index_plan is_grad_enabled memory_pressure
        memory_stats promote_types result_type save set_default_device set_default_dtype
        set_float32_matmul_precision set_fusion set_printoptions Tensor.record_stream""",
    "gradients themselves": """
        Tensor.backward Tensor.grad Tensor.grad_fn Tensor.register_hook Tensor.requires_grad
        Tensor.register_post_accumulate_grad_hook Tensor.requires_grad_ Tensor.retain_grad
        Tensor.retains_grad""",
    "an object of Python": """
        Tensor.__array_namespace__ Tensor.__array_priority__ Tensor.__class__ Tensor.__copy__
        Tensor.__deepcopy__ Tensor.__delattr__ Tensor.__delitem__ Tensor.__dir__ Tensor.__doc__
        Tensor.__format__ Tensor.__getattribute__ Tensor.__getstate__ Tensor.__hash__
        Tensor.__init__ Tensor.__init_subclass__ Tensor.__module__ Tensor.__new__ Tensor.__reduce__
        Tensor.__reduce_ex__ Tensor.__repr__ Tensor.__setattr__ Tensor.__sizeof__ Tensor.__str__
        Tensor.__subclasshook__ Tensor.__torch_function__ linalg.LinAlgError""",
}

# Gradients that differences in float64 cannot show, or that cannot be differentiated: they have
# tests of their own.
OWN = "genesis.nn.functional.ctc_loss Tensor.float Tensor.half Tensor.bfloat16 Tensor.cuda"


def reasons() -> dict[str, str]:
    """The reason of each name; one that stands for several has them all."""
    found: dict[str, str] = {}
    for reason, words in NONE.items():
        for word in words.split():
            if word.startswith("Tensor."):
                found[word] = reason
            else:
                found |= dict.fromkeys(
                    (f"genesis.{word}", f"Tensor.{word}", f"Tensor.{word}_"), reason
                )
    return found
