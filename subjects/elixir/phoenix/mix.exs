defmodule Subject.MixProject do
  use Mix.Project

  def project do
    [
      app: :subject,
      version: "0.0.0",
      elixir: "~> 1.14",
      start_permanent: true,
      deps: deps()
    ]
  end

  def application, do: [extra_applications: [:logger]]

  # The last versions for Debian's Elixir 1.14. What Phoenix and Bandit depend on is pinned too.
  defp deps do
    [
      {:phoenix, "1.7.24"},
      {:bandit, "1.11.1"},
      {:castore, "1.0.19"},
      {:hpax, "1.0.3"},
      {:jason, "1.4.5"},
      {:mime, "2.0.7"},
      {:phoenix_pubsub, "2.2.0"},
      {:phoenix_template, "1.0.4"},
      {:plug, "1.19.2"},
      {:plug_crypto, "2.1.1"},
      {:telemetry, "1.4.1"},
      {:thousand_island, "1.5.0"},
      {:websock, "0.5.3"},
      {:websock_adapter, "0.5.9"}
    ]
  end
end
