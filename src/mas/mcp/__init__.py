"""The product for agents' own tools (Model Context Protocol): over standard input, or behind the server."""
