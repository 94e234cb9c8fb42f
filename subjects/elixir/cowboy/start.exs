# What Elixir runs: the program itself is compiled already. This process is the supervisor's parent, and so never ends.

Shootout.main(System.argv())
Process.sleep(:infinity)
