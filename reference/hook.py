"""What mkdocs calls."""
