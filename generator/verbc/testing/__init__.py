"""Modules for the tests of generated packages, which carry them byte for byte."""
