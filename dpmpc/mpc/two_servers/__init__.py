"""Two servers without a third: oblivious transfer, garbled circuits."""
