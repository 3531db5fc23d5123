"""bpftrace's language at probes of any guest."""
