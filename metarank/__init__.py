"""metarank: rank the labels of an instance and decide how many of them to keep."""
