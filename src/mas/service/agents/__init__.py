"""The agents of a session: their programs, states, output and questions."""
