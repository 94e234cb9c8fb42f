# An HTTP/2 connection of Mint in a process of its own, as Mint's documentation advises. It is opened with the first
# request, and again after it was lost. A request that finds all streams taken waits in a queue.

defmodule Shared do
  use GenServer

  alias Mint.HTTP2

  def start_link(target), do: GenServer.start_link(__MODULE__, target)

  # Returns :ok or the failure class. The call has no time-out, because each stream has one.
  def get(shared), do: GenServer.call(shared, :get, :infinity)

  @impl true
  def init(target) do
    {:ok, %{target: target, connection: nil, streams: %{}, waiting: :queue.new()}}
  end

  @impl true
  def handle_call(:get, from, state) do
    {:noreply, begin_waiting(%{state | waiting: :queue.in(from, state.waiting)})}
  end

  @impl true
  def handle_info({:late, ref}, %{streams: streams} = state) when is_map_key(streams, ref) do
    class = if streams[ref].status, do: "timeout.total", else: "timeout.first_byte"
    state = settle(state, ref, class)

    case HTTP2.cancel_request(state.connection, ref) do
      {:ok, connection} -> {:noreply, begin_waiting(%{state | connection: connection})}
      {:error, connection, why} -> {:noreply, lost(state, connection, why)}
    end
  end

  def handle_info(_, %{connection: nil} = state), do: {:noreply, state}

  def handle_info(message, state) do
    case HTTP2.stream(state.connection, message) do
      {:ok, connection, parts} ->
        {:noreply, begin_waiting(hear(%{state | connection: connection}, parts))}

      {:error, connection, why, parts} ->
        {:noreply, lost(hear(state, parts), connection, why)}

      :unknown ->
        {:noreply, state}
    end
  end

  # Begins requests of the queue, as many as the connection has room for.
  defp begin_waiting(state) do
    state = open(state)

    with true <- has_room(state),
         {{:value, from}, waiting} <- :queue.out(state.waiting) do
      begin_waiting(begin(%{state | waiting: waiting}, from))
    else
      _ -> state
    end
  end

  # After a GOAWAY the streams that the server has begun still end, and then a new connection is opened.
  defp open(%{connection: connection, streams: streams, waiting: waiting} = state) do
    cond do
      :queue.is_empty(waiting) -> state
      connection == nil -> connect(state)
      HTTP2.open?(connection) or streams != %{} -> state
      true -> connect(%{state | connection: close(connection)})
    end
  end

  defp connect(%{target: target} = state) do
    options = [transport_opts: [timeout: target.timeout_ms]]

    case HTTP2.connect(:http, target.host, target.port, options) do
      {:ok, connection} -> %{state | connection: connection}
      {:error, %{reason: :timeout}} -> refuse(state, "connect.timeout")
      {:error, why} -> refuse(state, :talk.class_of(why))
    end
  end

  # No connection could be opened for the request that is first in the queue. The others try anew.
  defp refuse(state, class) do
    {{:value, from}, waiting} = :queue.out(state.waiting)
    GenServer.reply(from, class)
    open(%{state | waiting: waiting})
  end

  defp has_room(%{connection: nil}), do: false

  defp has_room(%{connection: connection, target: target}) do
    permitted = HTTP2.get_server_setting(connection, :max_concurrent_streams)

    HTTP2.open?(connection) and
      HTTP2.open_request_count(connection) < min(target.pipelining, permitted)
  end

  defp begin(%{target: target} = state, from) do
    case HTTP2.request(state.connection, "GET", target.path, [], nil) do
      {:ok, connection, ref} ->
        timer = Process.send_after(self(), {:late, ref}, target.timeout_ms)
        stream = %{from: from, timer: timer, status: nil}
        %{state | connection: connection, streams: Map.put(state.streams, ref, stream)}

      {:error, connection, why} ->
        GenServer.reply(from, class_of(why))
        lost(state, connection, why)
    end
  end

  defp hear(state, parts), do: Enum.reduce(parts, state, &hear_part/2)

  defp hear_part({:status, ref, status}, state) when is_map_key(state.streams, ref) do
    put_in(state.streams[ref].status, status)
  end

  defp hear_part({:done, ref}, %{streams: streams} = state) when is_map_key(streams, ref) do
    settle(state, ref, if(streams[ref].status == 200, do: :ok, else: "status"))
  end

  defp hear_part({:error, ref, why}, state), do: settle(state, ref, class_of(why))
  defp hear_part(_, state), do: state

  # Answers the process that waits for a stream.
  defp settle(state, ref, result) do
    case Map.pop(state.streams, ref) do
      {nil, _} ->
        state

      {stream, others} ->
        Process.cancel_timer(stream.timer)
        GenServer.reply(stream.from, result)
        %{state | streams: others}
    end
  end

  # The connection is of no more use, and its streams have failed.
  defp lost(state, connection, why) do
    state = Enum.reduce(Map.keys(state.streams), state, &settle(&2, &1, class_of(why)))
    begin_waiting(%{state | connection: close(connection)})
  end

  defp close(connection) do
    HTTP2.close(connection)
    nil
  end

  defp class_of(%{reason: :unprocessed}), do: "h2.goaway"
  defp class_of(%{reason: {:server_closed_request, _}}), do: "h2.stream"
  defp class_of(%{reason: {:server_closed_connection, _, _}}), do: "h2.goaway"
  defp class_of(%Mint.HTTPError{}), do: "h2.protocol"
  defp class_of(why), do: :talk.class_of(why)
end
