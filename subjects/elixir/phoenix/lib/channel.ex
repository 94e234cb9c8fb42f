# Echo and broadcast: each client joins one channel, in a process of its own.

defmodule Shootout.Channel do
  use Phoenix.Channel, log_join: false, log_handle_in: false

  @impl true
  def join(_topic, _params, socket), do: {:ok, socket}

  @impl true
  def handle_in("echo", %{"body" => body}, socket) do
    {:reply, {:ok, %{type: "echo", body: body}}, socket}
  end

  # The receipt goes through the same process as the sender's own broadcast, so it is sent after it.
  def handle_in("broadcast", %{"body" => body}, socket) do
    broadcast!(socket, "broadcast", %{type: "broadcast", body: body})
    {:reply, {:ok, %{type: "broadcastResult", body: body}}, socket}
  end

  def handle_in(_event, _message, socket), do: {:noreply, socket}
end

defmodule Shootout.Socket do
  use Phoenix.Socket, log: false

  channel "room:*", Shootout.Channel

  @impl true
  def connect(_params, socket, _info), do: {:ok, socket}

  @impl true
  def id(_socket), do: nil
end
