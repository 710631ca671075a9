"""Every numba function of the package: plain loops, arrays in, arrays out.

They import numba and numpy only, release the interpreter's lock, and never raise: a kernel that
finds a fault returns where it is, and its caller says what it means.
"""
