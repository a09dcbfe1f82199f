"""Threads, progress, parameters, files: what is of no room in particular."""
