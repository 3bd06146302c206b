"""A first meeting: sites compare, column by column and under a promise, what their records look like before they run
anything together."""
