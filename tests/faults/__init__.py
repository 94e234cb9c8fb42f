"""The table of faults, the scripted peers that act it out, and the laws that hold in each row."""
