"""Engine adapters. The engine owns its quirks; none of them leaks upward."""
