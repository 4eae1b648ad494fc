"""The statistics: intervals, verdicts of one ratio and of a family, levels of a series."""
