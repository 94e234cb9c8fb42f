# Puma's settings. One process, because the adapter reaches no other. Once a connection is upgraded, Action Cable's
# own threads do the work.

raise "RACK_ENV must be production" unless ENV["RACK_ENV"] == "production"

Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
threads 5, 5
workers 0
log_requests false

# Before each answer Puma reads TCP_INFO, to see whether the client has left. JRuby 9.3 has room for 256 bytes of it:
# where the kernel has more (Linux 6.18: 280), a request may fail with the status 500. So Puma does not look.
if RUBY_ENGINE == "jruby"
  require "puma/server"
  Puma::Server.class_eval do
    def closed_socket?(_socket)
      false
    end
  end
end
