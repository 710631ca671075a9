"""All numba functions of the package: plain loops that read arrays and write arrays.

They import only numba, llvmlite and numpy, and release the interpreter's lock. They never raise: a
kernel writes the position of a fault, and its caller raises the error.
"""
