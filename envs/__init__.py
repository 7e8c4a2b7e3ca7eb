"""Environments that speak in symbols, and their vocabularies.

`make` makes them and finds their vocabulary, `doorkey` is MiniGrid's DoorKey as facts, `automatic` names the
numbers of any other space, `seeding` makes runs resumable, `check` says which predicates say nothing.
"""
