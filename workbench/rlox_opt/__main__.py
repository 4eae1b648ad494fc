import sys

from rlox_opt import main

sys.exit(main())
