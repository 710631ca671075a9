"""All numba functions of the package: plain loops that read arrays and write arrays.

They import only numba, llvmlite and numpy, release the interpreter's lock, and never raise: a
kernel writes where it finds a fault, and its caller raises the error.
"""
