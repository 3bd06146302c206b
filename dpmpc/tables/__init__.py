"""Tables of counts over all owners: the answers to questions, and the synthetic rows, that are made of them."""
