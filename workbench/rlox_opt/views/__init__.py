"""Everything that people read: the terminal, Markdown, pages."""
