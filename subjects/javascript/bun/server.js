// HTTP server on Bun.serve(). With more than one CPU, it starts itself once per CPU. The processes
// share the port by SO_REUSEPORT, as Bun's documentation recommends.

// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD = '.......................................................';
const PLAIN = { headers: { Server: 'bun', 'Content-Type': 'text/plain', 'X-Pad': PAD } };
const JSON_HEADERS = { headers: { Server: 'bun' } };
const NOT_FOUND = { status: 404, headers: { Server: 'bun' } };

function serve(hostname, port) {
  Bun.serve({
    hostname,
    port,
    reusePort: true,
    // A connection ends when the client says so.
    idleTimeout: 0,
    development: false,
    routes: {
      '/': () => new Response('Hello, World!', PLAIN),
      '/json': () => Response.json({ message: 'Hello, World!' }, JSON_HEADERS),
    },
    fetch: () => new Response('not found', NOT_FOUND),
  });
  process.on('SIGTERM', () => process.exit(0));
}

// Ends when told to, or when one of the processes has ended by itself.
function lead(host, port, workers) {
  const processes = [];
  let ending = false;
  const end = async (code) => {
    if (ending) return;
    ending = true;
    for (const each of processes) each.kill('SIGTERM');
    await Promise.all(processes.map((each) => each.exited));
    process.exit(code);
  };
  process.on('SIGTERM', () => end(0));
  for (let i = 0; i < workers; i += 1) {
    processes.push(
      Bun.spawn([process.execPath, import.meta.path, host, port, '1'], {
        stdio: ['ignore', 'inherit', 'inherit'],
        onExit: () => end(1),
      }),
    );
  }
}

const [host, port, cpus] = process.argv.slice(2);
if (Number(cpus) > 1) lead(host, port, Number(cpus));
else serve(host, Number(port));
