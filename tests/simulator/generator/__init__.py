"""From a seed, workflows that an author could have written and deployed.

sketch      nodes and transitions being collected
contents    what a node does
conditions  what decides a transition
policies    how joins decide, merge and give up
blocks      chains, choices, loops, triggers
fan_outs    forks, replications, groups of every kind and their joins
trimmings   what may be put on any finished sketch: retries, deadlines, failure edges, cancellation, …
flow        what keeps runs from running each other over: limits on starts, priorities, budgets
versions    what the author deploys later: the same again, renamed, grown, or in the way of live runs
"""

from tests.simulator.generator.generate import generate

__all__ = ["generate"]
