"""The agents of a session: what they run, how they are, what they show and ask."""
