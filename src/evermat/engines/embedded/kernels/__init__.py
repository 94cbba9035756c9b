"""The kernels of the embedded engine: loops that Numba compiles to machine code.

`keys` has the vocabulary that all of them share; `layout` describes relations and
indexes by the addresses of their arrays.
"""
