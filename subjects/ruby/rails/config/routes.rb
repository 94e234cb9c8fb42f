# The routes of the application.

Rails.application.routes.draw do
  root to: "api#plain"
  get "json", to: "api#json"
  # Without it, Rails raises an exception for an unknown path, and logs it.
  match "*path", to: "api#missing", via: :all
end
