"""What the engine does with each guest: a row per architecture."""
