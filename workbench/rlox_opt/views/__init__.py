"""What people read: the terminal, Markdown, pages."""
