"""The parts of the reference that are made from the code, and how mkdocs puts them into the site."""
