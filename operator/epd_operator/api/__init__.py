"""The types a user writes, what is found wrong with them, and the CustomResourceDefinitions made from them.

Nothing here knows vLLM beyond the names of its settings, and nothing here reads a clock, a file or a network.
"""
