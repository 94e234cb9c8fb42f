# The Rails application: only what Action Cable needs, with the settings of production. Its adapter stays inside the
# process (cable.yml).

require "action_controller/railtie"
require "action_cable/engine"
require "securerandom"

module Subject
  class Application < Rails::Application
    config.load_defaults 6.1
    config.root = File.expand_path("..", __dir__)
    config.api_only = true
    config.eager_load = true
    config.cache_classes = true
    config.secret_key_base = SecureRandom.hex(64)
    # Nothing is logged per message: Action Cable logs each one at the level info.
    config.logger = ActiveSupport::Logger.new($stderr)
    config.log_level = :fatal
    # The clients that measure it are not browsers.
    config.action_cable.disable_request_forgery_protection = true
    config.action_cable.mount_path = "/cable"
  end
end
