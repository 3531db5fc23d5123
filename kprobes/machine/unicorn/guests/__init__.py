"""Rows of facts about the engine: one for each architecture."""
