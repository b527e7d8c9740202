"""Benchmark orchestrator for coding agents and frameworks in research-grade quantum programming."""

__version__ = "0.1.0"
