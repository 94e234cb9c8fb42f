# What answers requests over HTTP: the endpoint, its router and its controller.

defmodule Shootout.Controller do
  use Phoenix.Controller, formats: [:json]

  def send_text(conn, _params), do: text(conn, "Hello, World!")
  def send_json(conn, _params), do: json(conn, %{message: "Hello, World!"})
  def send_not_found(conn, _params), do: conn |> put_status(:not_found) |> text("not found")
end

defmodule Shootout.Router do
  use Phoenix.Router

  get "/", Shootout.Controller, :send_text
  get "/json", Shootout.Controller, :send_json
  # Without it, an unknown path raises an exception, after which Bandit ends the connection.
  match :*, "/*path", Shootout.Controller, :send_not_found
end

defmodule Shootout.Endpoint do
  use Phoenix.Endpoint, otp_app: :subject

  @message_bytes_max 16 * 1024 * 1024

  socket "/socket", Shootout.Socket,
    longpoll: false,
    websocket: [
      timeout: :infinity,
      compress: false,
      max_frame_size: @message_bytes_max,
      # The clients that measure it are not browsers.
      check_origin: false
    ]

  plug :name_server
  plug Shootout.Router

  defp name_server(conn, _options), do: Plug.Conn.put_resp_header(conn, "server", "phoenix")
end
