"""A tensor that lends its memory as torch's does, and refuses where torch's refuses."""

import numpy as np

CPU, CUDA = 1, 2


class Tensor:
    """Not an array: its dtype is none of NumPy's, and only the protocols give its values."""

    def __init__(self, values, *, requires_grad=False, device=CPU, dlpack=True):
        self.values = np.asarray(values)
        self.requires_grad = requires_grad
        self.device = device
        self.dlpack = dlpack
        self.dtype = f"torch.{self.values.dtype}"

    @property
    def shape(self):
        return self.values.shape

    def __len__(self):
        return len(self.values)

    def __getitem__(self, at):
        return Tensor(self.values[at], requires_grad=self.requires_grad, device=self.device)

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **options):
        if self.requires_grad or self.device != CPU or not self.dlpack:
            raise BufferError("Can't export this tensor")
        return self.values.__dlpack__(**options)

    def __array__(self, dtype=None, copy=None):
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        if self.device != CPU:
            raise TypeError("can't convert cuda:0 device type tensor to numpy.")
        return np.array(self.values, dtype, copy=copy)
