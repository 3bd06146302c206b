"""Outcomes in the forms that people and programs read: terminal, Markdown, HTML, SVG, CSV, JSON. Knows values alone."""
