defmodule Subject.MixProject do
  use Mix.Project

  def project do
    [
      app: :subject,
      version: "0.0.0",
      elixir: "~> 1.14",
      start_permanent: true,
      deps: [{:machine_gun, "~> 0.1.5"}]
    ]
  end

  # jiffy, which the lines are read and written with, is Debian's.
  def application, do: [extra_applications: [:logger, :jiffy]]
end
