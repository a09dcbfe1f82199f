"""The compiled core under sanitizers: ``python -m sanitize.run``."""
