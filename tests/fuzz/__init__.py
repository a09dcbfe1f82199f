"""Fuzzers of all that metarank reads: saved models, data files, and the compiled core. See README.md."""
