"""From a seed, workflows that an author could have written and deployed.

sketch      nodes and transitions being collected
contents    what a node does
conditions  what decides a transition
policies    how joins decide, merge and give up
blocks      chains, choices, loops, triggers
fan_outs    forks, replications, groups of every kind and their joins
trimmings   what may be put on any finished sketch: retries, deadlines, failure edges, cancellation, …
"""

from tests.simulator.generator.generate import generate

__all__ = ["generate"]
