"""Print the folder in which builds of the project in this folder are kept."""

import sys

from rlox_opt.project.project import Project
from rlox_opt.system.files import NotReadError
from rlox_opt.system.usage import UsageError

if __name__ == "__main__":
    try:
        print(Project.here().revisions)
    except (UsageError, NotReadError) as error:
        sys.exit(f"::error::rlox-opt: {error}")
