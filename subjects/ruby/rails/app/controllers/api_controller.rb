# Answers the routes.
class ApiController < ActionController::API
  def plain
    render plain: "Hello, World!"
  end

  def json
    render json: { message: "Hello, World!" }
  end

  def missing
    render plain: "not found", status: :not_found
  end
end
