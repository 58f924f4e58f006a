"""The guard in front of every route: which requests are admitted, how large, how long; `chain` puts it together."""
