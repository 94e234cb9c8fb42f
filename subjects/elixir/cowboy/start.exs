# The script that start.sh runs; the program itself is already compiled. This process is the supervisor's parent, so
# it must not end.

Shootout.main(System.argv())
Process.sleep(:infinity)
