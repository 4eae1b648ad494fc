"""A benchmark that does not apply is left out: one that fails keeps asv from comparing at all."""


def skip_unless(holds, why):
    """asv then shows n/a."""
    if not holds:
        from asv_runner.benchmarks.mark import SkipNotImplemented

        raise SkipNotImplemented(why)
