# Starts Phoenix with the settings of production. They are set here, as there is no release that reads a file.

defmodule Shootout do
  @backlog 4096
  # A client that reads nothing for so long is disconnected. Meanwhile its messages wait in its process's mailbox.
  @send_timeout_ms 10_000
  @idle_ms 3_600_000

  def main([host, port]) do
    # Nothing is logged per request or message.
    Logger.configure(level: :error)
    {:ok, address} = :inet.parse_address(String.to_charlist(host))
    Application.put_env(:subject, Shootout.Endpoint, endpoint(address, String.to_integer(port)))
    {:ok, _} = Application.ensure_all_started(:phoenix)
    {:ok, _} = Application.ensure_all_started(:bandit)

    {:ok, _} =
      Supervisor.start_link([{Phoenix.PubSub, name: Shootout.PubSub}, Shootout.Endpoint],
        strategy: :one_for_one
      )
  end

  defp endpoint(address, port) do
    [
      server: true,
      adapter: Bandit.PhoenixAdapter,
      pubsub_server: Shootout.PubSub,
      http: [
        ip: address,
        port: port,
        http_options: [compress: false],
        thousand_island_options: [
          read_timeout: @idle_ms,
          num_connections: :infinity,
          transport_options: [
            backlog: @backlog,
            send_timeout: @send_timeout_ms,
            send_timeout_close: true
          ]
        ]
      ]
    ]
  end
end
