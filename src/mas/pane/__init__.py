"""The launcher: the first process in every pane. It uses only the standard library, and as little of it as possible."""
