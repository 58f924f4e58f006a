"""What MAS does; one verb per file."""
