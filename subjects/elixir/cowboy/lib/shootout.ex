# Starts Cowboy with one route, and the registry of clients through which broadcasts go.

defmodule Shootout do
  @backlog 4096
  @acceptors 100
  # A client that reads nothing for so long is disconnected. Meanwhile its messages wait in its process's mailbox.
  @send_timeout_ms 10_000

  def main([host, port]) do
    {:ok, _} = Application.ensure_all_started(:cowboy)
    {:ok, address} = :inet.parse_address(String.to_charlist(host))

    {:ok, _} =
      Supervisor.start_link(
        [
          Shootout.Clients,
          :ranch.child_spec(
            __MODULE__,
            :ranch_tcp,
            transport(address, String.to_integer(port)),
            :cowboy_clear,
            protocol()
          )
        ],
        strategy: :one_for_one
      )
  end

  defp transport(address, port) do
    %{
      max_connections: :infinity,
      num_acceptors: @acceptors,
      socket_opts: [
        ip: address,
        port: port,
        backlog: @backlog,
        nodelay: true,
        send_timeout: @send_timeout_ms,
        send_timeout_close: true
      ]
    }
  end

  # The options that :cowboy.start_clear/3 would add. It is not used, as it would start the listener itself.
  defp protocol do
    routes = :cowboy_router.compile([{:_, [{"/ws", Shootout.Socket, []}]}])
    %{connection_type: :supervisor, env: %{dispatch: routes}}
  end
end
