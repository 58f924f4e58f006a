"""The way in: joins a port of this machine with a port inside a session's own network."""
