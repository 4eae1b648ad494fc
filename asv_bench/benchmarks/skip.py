"""Skips benchmarks that do not apply: a failing benchmark keeps asv from comparing at all."""


def skip_unless(holds, why):
    """Raise asv's error for skipping, unless `holds`; asv then shows n/a."""
    if not holds:
        from asv_runner.benchmarks.mark import SkipNotImplemented

        raise SkipNotImplemented(why)
