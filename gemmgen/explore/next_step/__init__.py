"""The next step of a schedule: the statement that the models expect most of, found by trying."""
