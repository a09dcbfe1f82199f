"""What the names of labels say."""
