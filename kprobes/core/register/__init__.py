"""Registration: from what a user wrote to probes in memory.

Begin with registry.py. locate.py resolves places, admission.py refuses them, verdict.py foretells
what a probe would be, listing.py shows those that are registered.
"""
