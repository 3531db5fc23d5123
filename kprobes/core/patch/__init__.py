"""Changes guest memory for probes: breakpoints, jumps, slots, and the text beneath them.

Begin with probepoint.py, which has all that stands at one address; arming.py has its states. Then
text.py (patches), survey.py (may a probe stand here?), optimizer.py (breakpoints into jumps).
"""
