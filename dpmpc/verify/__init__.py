"""Three independent lines of evidence that noise is added once, after aggregation, and keeps what it promises."""
