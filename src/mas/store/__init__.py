"""What is on disk; one module owns each file."""
