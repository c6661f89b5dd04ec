"""Schedules found for a shape: ``suggest`` by a model, ``tune`` by measuring."""
