// HTTP server on ASP.NET Core: subject.dll HOST PORT. The runtime takes the number of CPUs from the environment.

using System.Net;

const int Backlog = 4096;
// Brings the plain response to 192 bytes, see subjects/README.md.
const string Pad = "...................................................";

var builder = WebApplication.CreateBuilder();
builder.Logging.ClearProviders();
builder.Services.Configure<HostOptions>(options => options.ShutdownTimeout = TimeSpan.FromSeconds(1));
builder.WebHost.UseSockets(options => options.Backlog = Backlog);
builder.WebHost.ConfigureKestrel(options =>
{
    options.Limits.KeepAliveTimeout = TimeSpan.FromHours(1);
    options.Listen(IPAddress.Parse(args[0]), int.Parse(args[1]));
});

var app = builder.Build();
app.MapGet("/", (HttpResponse response) =>
{
    response.Headers["X-Pad"] = Pad;
    return Results.Text("Hello, World!", "text/plain");
});
app.MapGet("/json", () => new Greeting("Hello, World!"));
app.Run();

internal sealed record Greeting(string Message);
