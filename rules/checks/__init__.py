"""The checks of a rule, one file each, in their order; those that need data are in `nser.induce.checks`.

extract → parse → names → logic → same (duplicate, equivalent, subsumed) → conflict; `pipeline` runs them.
"""
