# %% [markdown]
# # A trace in a notebook
#
# Machines, listings, traces and graphs show themselves as tables. This notebook is made from `notebook.py`, and its
# outputs are those of a run.

# %%
from kprobes import Kprobes, UnicornMachine

m = UnicornMachine.load("examples/demo.x86_64")
k = Kprobes(m)
with k.trace("p crc32 text=+0($arg2):string len=$arg3:u32", "r table_lookup $retval:s32") as t:
    m.call("table_init")
    m.call("parse_settings", b"width=640, height=480")
    m.call("table_lookup", b"height", 0)
t

# %% [markdown]
# ## Questions
#
# A trace is a table of Arrow, and a data frame: `t.to_arrow()`, `t.to_pandas()`.

# %%
frame = t.to_pandas()
print(frame.groupby("event").size().to_dict())
print(frame[frame.event == "p_crc32_0"].groupby("text").len.sum().to_dict())

# %% [markdown]
# ## What was called

# %%
with k.graph("parse_settings", functions="[!n]*") as tree:
    m.call("parse_settings", b"depth=24")
print(tree)

# %%
k.close()
m.close()
