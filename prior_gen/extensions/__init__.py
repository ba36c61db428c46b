"""The prior beyond the paper, one idea a file; off unless `prior.extensions.share` is above 0.

`choices` says which extensions a microbatch has and draws their parameters, which are its tag;
`task` makes a task from them. An extension is a module with `draw` (parameters, once a microbatch)
and a function that applies them to one task. See docs/prior_extensions.md.
"""
