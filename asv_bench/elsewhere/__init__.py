"""Other projects, measured unmodified: are known slowdowns found, and nothing else flagged?"""
