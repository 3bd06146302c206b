"""Frames between processes: addresses, listeners, dialling, TLS, heartbeats, and why a run ends."""
