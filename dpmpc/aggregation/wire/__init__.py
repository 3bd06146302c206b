"""What processes of a run say to each other and write down: frames, tokens, transcripts."""
