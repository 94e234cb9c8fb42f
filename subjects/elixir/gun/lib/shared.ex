# One Gun connection over HTTP/2, which many streams share. It is opened with the first request, and again after it
# was lost.

defmodule Shared do
  use GenServer

  def start_link(target), do: GenServer.start_link(__MODULE__, target)

  # Returns {:ok, gun} or {:error, class}, with the failure class.
  def get(shared), do: GenServer.call(shared, :get, :infinity)

  # Reports that the connection of a stream is lost or being closed.
  def lost(shared, gun), do: GenServer.call(shared, {:lost, gun}, :infinity)

  @impl true
  def init(target), do: {:ok, {nil, target}}

  @impl true
  def handle_call(:get, _, {nil, target}) do
    options = %{protocols: [:http2], retry: 0, connect_timeout: target.timeout_ms}
    {:ok, gun} = :gun.open(target.host, target.port, options)

    case :gun.await_up(gun, target.timeout_ms) do
      {:ok, _} -> {:reply, {:ok, gun}, {gun, target}}
      {:error, :timeout} -> {:reply, {:error, "connect.timeout"}, {close(gun), target}}
      {:error, why} -> {:reply, {:error, :talk.class_of(why)}, {close(gun), target}}
    end
  end

  def handle_call(:get, _, {gun, target}), do: {:reply, {:ok, gun}, {gun, target}}
  def handle_call({:lost, gun}, _, {gun, target}), do: {:reply, :ok, {close(gun), target}}
  def handle_call({:lost, _}, _, state), do: {:reply, :ok, state}

  @impl true
  def handle_info({:gun_down, gun, _, _, _, _}, {gun, target}), do: {:noreply, {close(gun), target}}
  def handle_info(_, state), do: {:noreply, state}

  defp close(gun) do
    :gun.close(gun)
    :gun.flush(gun)
    nil
  end
end
