# One client: what it says and what it is sent, in a process of its own.

defmodule Shootout.Socket do
  @behaviour :cowboy_websocket

  @message_bytes_max 16 * 1024 * 1024

  @impl true
  def init(request, state) do
    {:cowboy_websocket, request, state, %{idle_timeout: :infinity, max_frame_size: @message_bytes_max}}
  end

  @impl true
  def websocket_init(state) do
    Shootout.Clients.join()
    {[], state}
  end

  # What is no message of ours is ignored.
  @impl true
  def websocket_handle({:text, text}, state) do
    case parse(text) do
      %{"type" => "echo"} = message -> {[{:text, echo(message["payload"])}], state}
      %{"type" => "broadcast"} = message -> broadcast(message["payload"], state)
      _ -> {[], state}
    end
  end

  def websocket_handle(_, state), do: {[], state}

  @impl true
  def websocket_info({:send, text}, state), do: {[{:text, text}], state}
  def websocket_info(_, state), do: {[], state}

  defp broadcast(payload, state) do
    count = Shootout.Clients.send_all({:send, encode(type: "broadcast", payload: payload)})
    # Through our own mailbox, too, so that it comes behind the broadcast.
    send(self(), {:send, encode(type: "broadcastResult", payload: payload, listenerCount: count)})
    {[], state}
  end

  defp echo(payload), do: encode(type: "echo", payload: payload)

  # A null is an atom on both ways.
  defp encode(fields), do: :jsx.encode(Enum.map(fields, fn {name, value} -> {name, value || :null} end))

  defp parse(text) do
    :jsx.decode(text, [:return_maps])
  rescue
    ArgumentError -> nil
  end
end
