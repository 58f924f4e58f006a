"""A session's network, tried in namespaces that stand for the machine and for the internet."""
