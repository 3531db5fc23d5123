"""From what a user wrote to probes that stand: places, refusals, registration, lists."""
