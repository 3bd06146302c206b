"""What kills, fuzzes and spoils a run at full size; the suite runs a little of each."""
