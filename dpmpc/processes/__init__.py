"""Processes of this machine: their memory, how they are started, watched and ended."""
