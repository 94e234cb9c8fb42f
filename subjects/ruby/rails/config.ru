# The entry point for Rack: a Rails application that consists of Action Controller only.

require_relative "config/application"

Subject::Application.initialize!
run Subject::Application
