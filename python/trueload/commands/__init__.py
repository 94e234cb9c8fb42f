"""What the command line and the Python API both call.

`doctor` is this machine fit to measure?
"""
