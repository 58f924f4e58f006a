"""A network of a session's own: a namespace, and one process outside it that joins connections by name."""
