"""Files of any kind: written whole, opened safely, copied, packed."""
