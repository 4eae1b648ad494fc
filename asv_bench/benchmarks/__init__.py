"""Benchmarks that asv runs commit after commit."""

from benchmarks.provenance import refuse_other_builds

refuse_other_builds()
