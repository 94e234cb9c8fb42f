# Puma's settings: a process per CPU, and in each as many threads as Rails sets by default.

raise "RACK_ENV must be production" unless ENV["RACK_ENV"] == "production"

cpus = Integer(ENV.fetch("WEB_CONCURRENCY"))
Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
threads 5, 5
# One process needs no other one to start it.
workers(cpus > 1 ? cpus : 0)
preload_app!
# A client ends its connection itself.
persistent_timeout 3600
first_data_timeout 3600
log_requests false
