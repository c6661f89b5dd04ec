"""One file per directive; ``ladder`` has their order."""
