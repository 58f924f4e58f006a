"""Messages: stored, delivered to agents, waited for."""
