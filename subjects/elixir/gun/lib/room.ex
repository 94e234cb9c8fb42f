# A worker that performs one stream at a time on the connection that its pool shares.

defmodule Room do
  use GenServer

  def start_link(target), do: GenServer.start_link(__MODULE__, target)

  # Returns :ok or the failure class. The call has no time-out, because this module has its own.
  def get(room), do: GenServer.call(room, :get, :infinity)

  @impl true
  def init(target), do: {:ok, target}

  @impl true
  def handle_call(:get, _, target) do
    case Shared.get(target.shared) do
      {:ok, gun} -> {:reply, ask(gun, target), target}
      {:error, class} -> {:reply, class, target}
    end
  end

  @impl true
  def handle_info(_, target), do: {:noreply, target}

  defp ask(gun, target) do
    stream = :gun.get(gun, target.path, [], %{reply_to: self()})

    case :gun.await(gun, stream, target.timeout_ms) do
      {:response, :fin, status, _} -> answered(status)
      {:response, :nofin, status, _} -> read(gun, stream, status, target)
      {:error, why} -> failed(gun, stream, why, target)
    end
  end

  defp read(gun, stream, status, target) do
    case :gun.await_body(gun, stream, target.timeout_ms) do
      {:ok, _} -> answered(status)
      {:ok, _, _} -> answered(status)
      {:error, why} -> failed(gun, stream, why, target)
    end
  end

  defp answered(200), do: :ok
  defp answered(_), do: "status"

  defp failed(gun, stream, :timeout, _) do
    :gun.cancel(gun, stream)
    :gun.flush(stream)
    "timeout.first_byte"
  end

  defp failed(_, _, {:stream_error, _, _}, _), do: "h2.stream"
  defp failed(_, _, {:stream_error, _}, _), do: "h2.stream"

  defp failed(gun, _, why, target) do
    Shared.lost(target.shared, gun)
    if :talk.class_of(why) == "other", do: "h2.goaway", else: :talk.class_of(why)
  end
end
