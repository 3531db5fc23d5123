"""Why probes are refused, in the words that several architectures share."""

EXCEPTION = "raises an exception, whose handler would see the slot's address"
PRIVILEGED = "changes privileged state, which the trap after it depends on"
RESERVED = "reserved encoding"
WAITS = "waits for an event: what ends that would find the guest in the slot"
TRANSACTION = "part of a transaction: a trap inside aborts it"
TRAP_RETURN = "returns from a trap"
EXCEPTION_RETURN = "exception return"
