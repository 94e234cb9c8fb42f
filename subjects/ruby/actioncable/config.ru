# Rack's entry: a Rails application that has nothing but Action Cable.

require_relative "config/application"

Subject::Application.initialize!
run Subject::Application
