"""Messages: kept, taken to agents, waited for."""
