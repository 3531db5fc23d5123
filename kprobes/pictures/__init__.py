"""Pictures: pages of HTML that show what was recorded, each a file that needs no other and no
network.

`page` is the frame that all share: title, facts, what was lost, tabs, legends, light and dark;
scripts/ draws in it. Pages know no traces: who has records makes a chart's data of them, or HTML of
its own (coverage). Begin with `page.page`.
"""
