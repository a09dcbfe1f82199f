"""One file a question; each has a `STUDY`."""
