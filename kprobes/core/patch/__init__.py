"""Changes guest memory for probes: probepoints, the optimizer, slots, original text."""
