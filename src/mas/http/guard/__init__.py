"""In front of every route: who may come in, with how much, for how long; `chain` puts it together."""
