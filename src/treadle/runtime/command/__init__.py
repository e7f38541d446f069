"""Brings a command to its run: directly in the process that coordinates it, through the inbox from any other."""
