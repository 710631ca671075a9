"""Models of the `implicit` library and their checkpoints."""
