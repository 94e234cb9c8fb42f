# The WebSocket handler of one client, in a process of its own.

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

  # Answers a message. Ignores a text that is not a valid message.
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
    # The receipt also goes through our own mailbox, so that it is sent after the broadcast.
    send(self(), {:send, encode(type: "broadcastResult", payload: payload, listenerCount: count)})
    {[], state}
  end

  defp echo(payload), do: encode(type: "echo", payload: payload)

  # jsx reads and writes JSON's null as the atom :null. A missing payload is nil, and becomes null.
  defp encode(fields), do: :jsx.encode(Enum.map(fields, fn {name, value} -> {name, value || :null} end))

  defp parse(text) do
    :jsx.decode(text, [:return_maps])
  rescue
    ArgumentError -> nil
  end
end
