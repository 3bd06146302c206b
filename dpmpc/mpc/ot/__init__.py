"""Oblivious transfer between two servers: a few base transfers by elliptic curves, then any number from AES streams."""
