"""Other people's projects, measured as they are: are known slowdowns found, and nothing else?"""
