// The protocol between trueload and a client in Java, and the threads that perform the requests
// of an order. This file must not use an HTTP library.
import com.google.gson.GsonBuilder;
import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

final class Talk {
    /** The first line: {@code concurrency} requests at once, over {@code pools} client objects. */
    static final class Setup {
        String url;
        int concurrency;
        int pools;
        int pool_size;
        long timeout_ms;
        int pipelining;
        boolean keep_alive;
    }

    /** One request. Returns null if it was answered, else the failure class. */
    interface Request {
        String perform() throws InterruptedException;
    }

    private record Tally(List<Long> latenciesNs, Map<String, Integer> failed) {}

    // serializeNulls: in a claim without answers, the figures are null.
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();

    private Talk() {}

    /** Reads the setup and performs the orders; {@code open} makes the request of each thread. */
    static void talk(
            Function<Setup, String> unsupported, Function<Setup, Function<Integer, Request>> open)
            throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Setup setup = parse(input.readLine());
        String why = unsupported.apply(setup);
        if (why != null) {
            say(Map.of("unsupported", why));
            System.exit(0);
        }
        Function<Integer, Request> requestOf = open.apply(setup);
        List<Request> requests = new ArrayList<>();
        for (int i = 0; i < setup.concurrency; i++) {
            requests.add(requestOf.apply(i));
        }
        ExecutorService threads = Executors.newFixedThreadPool(setup.concurrency);
        say(Map.of("ready", true));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (!line.matches("go \\d{1,9}")) {
                die("no order: " + line);
            }
            say(perform(threads, requests, Long.parseLong(line.substring(3))));
        }
        System.exit(0);
    }

    private static Setup parse(String line) {
        try {
            Setup setup = line == null ? null : GSON.fromJson(line, Setup.class);
            if (setup == null || setup.url == null || setup.concurrency < 1 || setup.pools < 1) {
                die("no setup: url, concurrency and pools are needed");
            }
            return setup;
        } catch (JsonParseException error) {
            die("no setup: " + error.getMessage());
            throw error;
        }
    }

    private static Map<String, Object> perform(
            ExecutorService threads, List<Request> requests, long number) throws Exception {
        var taken = new AtomicLong();
        var works = new ArrayList<Callable<Tally>>();
        for (Request request : requests) {
            works.add(() -> work(request, taken, number));
        }
        long begun = System.nanoTime();
        List<Future<Tally>> done = threads.invokeAll(works);
        long elapsed = System.nanoTime() - begun;
        var failed = new TreeMap<String, Integer>();
        var all = new ArrayList<Long>();
        for (Future<Tally> each : done) {
            all.addAll(each.get().latenciesNs());
            each.get().failed().forEach((name, count) -> failed.merge(name, count, Integer::sum));
        }
        var claim = new LinkedHashMap<String, Object>();
        claim.put("ok", all.size());
        claim.put("failed", failed);
        claim.put("elapsed_s", elapsed / 1e9);
        claim.put("latency_us", figures(all));
        return claim;
    }

    private static Tally work(Request request, AtomicLong taken, long number)
            throws InterruptedException {
        var tally = new Tally(new ArrayList<>(), new TreeMap<>());
        while (taken.getAndIncrement() < number) {
            long sent = System.nanoTime();
            String name = request.perform();
            if (name == null) {
                tally.latenciesNs().add(System.nanoTime() - sent);
            } else {
                tally.failed().merge(name, 1, Integer::sum);
            }
        }
        return tally;
    }

    private static Map<String, Double> figures(List<Long> all) {
        if (all.isEmpty()) {
            return null;
        }
        long[] sorted = all.stream().mapToLong(Long::longValue).toArray();
        Arrays.sort(sorted);
        var figures = new LinkedHashMap<String, Double>();
        figures.put("p50", at(sorted, 0.5));
        figures.put("p90", at(sorted, 0.9));
        figures.put("p99", at(sorted, 0.99));
        figures.put("max", at(sorted, 1));
        return figures;
    }

    private static double at(long[] sorted, double share) {
        return sorted[(int) Math.ceil(share * sorted.length) - 1] / 1e3;
    }

    /** Returns the failure class of an error, according to its chain of causes. */
    static String classOf(Throwable error) {
        for (Throwable at = error; at != null; at = at.getCause()) {
            String text = String.valueOf(at.getMessage());
            if (at instanceof ConnectException) {
                return "connect.refused";
            }
            if (at instanceof EOFException || text.contains("no bytes") || text.contains("EOF")) {
                return "empty";
            }
            if (at instanceof IOException && (text.contains("reset") || text.contains("Broken"))) {
                return "reset";
            }
        }
        return "other";
    }

    private static void say(Object line) {
        System.out.println(GSON.toJson(line));
        System.out.flush();
    }

    private static void die(String why) {
        System.err.println(why);
        System.exit(1);
    }
}
