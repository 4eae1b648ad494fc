"""Times in the form that files and git have."""

from datetime import datetime


def moment(text: str) -> datetime:
    """A time in ISO 8601. Raises ValueError. (Python reads a Z for UTC itself from 3.11 on.)"""
    return datetime.fromisoformat(f"{text[:-1]}+00:00" if text.endswith("Z") else text)
