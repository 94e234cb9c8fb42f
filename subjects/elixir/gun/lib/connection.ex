# One Gun connection. It is opened with its first request, and again after a request that failed.

defmodule Connection do
  use GenServer

  def start_link(target), do: GenServer.start_link(__MODULE__, target)

  # Returns :ok or the failure class. The call has no time-out, because this module has its own.
  def get(connection), do: GenServer.call(connection, :get, :infinity)

  @impl true
  def init(target), do: {:ok, {nil, target}}

  @impl true
  def handle_call(:get, _, {gun, target}) do
    case ask(gun, target) do
      {:ok, gun} -> {:reply, :ok, {keep(gun, target), target}}
      {:status, gun} -> {:reply, "status", {keep(gun, target), target}}
      {:error, class} -> {:reply, class, {nil, target}}
    end
  end

  # The server has closed the connection between two requests, or a message of an old connection arrives late.
  @impl true
  def handle_info({:gun_down, gun, _, _, _, _}, {gun, target}), do: {:noreply, {close(gun), target}}
  def handle_info(_, state), do: {:noreply, state}

  defp ask(nil, target) do
    # No retries: each request must be sent once only.
    options = %{
      protocols: [:http],
      retry: 0,
      connect_timeout: target.timeout_ms,
      http_opts: %{keepalive: :infinity}
    }

    {:ok, gun} = :gun.open(target.host, target.port, options)

    case :gun.await_up(gun, target.timeout_ms) do
      {:ok, _} -> ask(gun, target)
      {:error, :timeout} -> failed(gun, "connect.timeout")
      {:error, why} -> failed(gun, :talk.class_of(why))
    end
  end

  defp ask(gun, %{timeout_ms: timeout_ms} = target) do
    stream = :gun.get(gun, target.path, headers(target))

    case :gun.await(gun, stream, timeout_ms) do
      {:response, :fin, status, _} -> answered(status, gun)
      {:response, :nofin, status, _} -> read(gun, stream, status, timeout_ms)
      {:error, :timeout} -> failed(gun, "timeout.first_byte")
      {:error, why} -> failed(gun, class_of(why))
    end
  end

  defp read(gun, stream, status, timeout_ms) do
    case :gun.await_body(gun, stream, timeout_ms) do
      {:ok, _} -> answered(status, gun)
      {:ok, _, _} -> answered(status, gun)
      {:error, why} -> failed(gun, class_of(why))
    end
  end

  defp answered(200, gun), do: {:ok, gun}
  defp answered(_, gun), do: {:status, gun}

  defp headers(%{keep_alive: true}), do: []
  defp headers(%{keep_alive: false}), do: [{"connection", "close"}]

  defp keep(gun, %{keep_alive: true}), do: gun
  defp keep(gun, %{keep_alive: false}), do: close(gun)

  defp failed(gun, class) do
    close(gun)
    {:error, class}
  end

  defp close(gun) do
    :gun.close(gun)
    :gun.flush(gun)
    nil
  end

  defp class_of(:normal), do: "empty"
  defp class_of(why), do: :talk.class_of(why)
end
