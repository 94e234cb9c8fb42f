# The Rails application: the middleware and the headers that a new API application has in production.

require "action_controller/railtie"
require "securerandom"
require "time"

module Subject
  # Adds what a server sends in production. Neither Rails nor Puma does.
  class Stamp
    def initialize(app)
      @app = app
    end

    def call(env)
      status, headers, body = @app.call(env)
      headers["Server"] = "rails"
      headers["Date"] = Time.now.httpdate
      [status, headers, body]
    end
  end

  class Application < Rails::Application
    config.load_defaults 6.1
    config.root = File.expand_path("..", __dir__)
    config.api_only = true
    config.eager_load = true
    config.cache_classes = true
    config.secret_key_base = SecureRandom.hex(64)
    # Nothing is logged per request.
    config.logger = ActiveSupport::Logger.new($stderr)
    config.log_level = :fatal
    config.middleware.insert_before 0, Stamp
    # Without it, Puma sends even these short answers in chunks.
    config.middleware.insert_before 0, Rack::ContentLength
  end
end
