"""The one decorator of compiled kernels.

Kernels take arrays and scalars only, trust their input, never raise, and say in their docstring what
they overwrite. They are cached on disk, release the interpreter lock, and divide as NumPy does. Those called
from Python return scalars or one array, never a tuple with an array: an interrupt would be a SystemError.
"""

from numba import njit

kernel = njit(cache=True, nogil=True, error_model="numpy")
