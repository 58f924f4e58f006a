"""The product as tools for agents (Model Context Protocol), over standard input or on the server."""
