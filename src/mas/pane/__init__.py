"""The launcher: the process of every pane. Standard library only, and as little of it as can be."""
