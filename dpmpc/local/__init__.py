"""The owners of a run and what they do: their records, a survey, releases, figures, what is left in the folder. With
parties of this machine that is the whole run."""
