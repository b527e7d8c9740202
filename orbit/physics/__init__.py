"""Trusted numerics for evaluators and oracles: dense and matrix-product states, exact gradients, Adam, free fermions.

Everything is float64 and complex128 NumPy, written apart from every framework under test.
"""
