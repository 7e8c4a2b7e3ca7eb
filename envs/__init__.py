"""Environments that speak in symbols, and their vocabularies."""
