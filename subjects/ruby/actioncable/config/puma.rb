# Puma's settings. One process, because the adapter reaches no other. Once a connection is upgraded, Action Cable's
# own threads do the work.

raise "RACK_ENV must be production" unless ENV["RACK_ENV"] == "production"

Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
threads 5, 5
workers 0
log_requests false
