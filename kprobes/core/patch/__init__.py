"""What is in guest memory, and why: probepoints, the optimizer, slots, original text."""
