"""Extensions of the paper's prior, one per file; off unless `prior.extensions.share` is above 0.

`choices` selects the extensions of a microbatch and draws their parameters, which are stored as its
tag; `task` generates a task from them. An extension is a module with `draw` (parameters, once per
microbatch) and a function that applies them to one task. See docs/prior_extensions.md.
"""
