"""Showing a run that is under way: counts folded from its history, drawn as a picture or told line by line."""
