"""What agent programs record of their conversations: a reader for each format, which does nothing but read lines."""
