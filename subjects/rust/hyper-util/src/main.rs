//! HTTP client on hyper-util's `Client` with tokio: one for each pool, and a task for each
//! request that is open at once. With `http2` as its second argument, after CPUS, it speaks
//! HTTP/2 in plain text.
//!
//! A `Client` keeps connections but does not limit them, and has no time-out. So each pool has a
//! semaphore, and each request tokio's `timeout`, as is usual with this library.

mod talk;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::header::CONNECTION;
use hyper::{Request, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use talk::{Setup, Tally, class_of};

#[derive(Clone)]
struct Pool {
    client: Client<HttpConnector, Empty<Bytes>>,
    room: Arc<Semaphore>,
    timeout: Duration,
    keep_alive: bool,
}

fn open(setup: &Setup, http2: bool) -> Pool {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(if setup.keep_alive { setup.pool_size } else { 0 })
        .pool_idle_timeout(None)
        .retry_canceled_requests(false)
        .http2_only(http2)
        .build(connector);
    Pool {
        client,
        room: Arc::new(Semaphore::new(setup.pool_size * setup.pipelining)),
        timeout: Duration::from_millis(setup.timeout_ms),
        keep_alive: setup.keep_alive,
    }
}

async fn get(pool: &Pool, uri: &Uri) -> Result<(), &'static str> {
    // An error is impossible, because the semaphore is never closed.
    let _room = pool.room.acquire().await.map_err(|_| "other")?;
    timeout(pool.timeout, exchange(pool, uri)).await.unwrap_or(Err("timeout.total"))
}

async fn exchange(pool: &Pool, uri: &Uri) -> Result<(), &'static str> {
    let mut request = Request::get(uri.clone());
    if !pool.keep_alive {
        request = request.header(CONNECTION, "close");
    }
    let request = request.body(Empty::new()).map_err(|_| "other")?;
    let answer = pool.client.request(request).await.map_err(|error| class(&error))?;
    let status = answer.status();
    answer.into_body().collect().await.map_err(|error| class(&error))?;
    if status == StatusCode::OK { Ok(()) } else { Err("status") }
}

fn class(error: &(dyn std::error::Error + 'static)) -> &'static str {
    // Over HTTP/2: the request waited for a connection that another request failed to open.
    if format!("{error:?}").contains("CheckoutNoLongerWanted") {
        return "connect.refused";
    }
    let mut at = Some(error);
    while let Some(error) = at {
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
            return "empty";
        }
        // Errors of HTTP/2 come from the library h2.
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            if error.is_reset() {
                return "h2.stream";
            }
            if error.is_go_away() {
                return "h2.goaway";
            }
        }
        at = error.source();
    }
    class_of(error)
}

async fn work(pool: Pool, uri: Uri, taken: Arc<AtomicUsize>, number: usize) -> Tally {
    let mut tally = Tally::default();
    while taken.fetch_add(1, Ordering::Relaxed) < number {
        let sent = Instant::now();
        match get(&pool, &uri).await {
            Ok(()) => tally.latencies.push(sent.elapsed()),
            Err(class) => *tally.failed.entry(class).or_default() += 1,
        }
    }
    tally
}

async fn go(pools: &[Pool], uri: &Uri, concurrency: usize, number: usize) -> (Tally, Duration) {
    let taken = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..concurrency)
        .map(|i| {
            let pool = pools[i % pools.len()].clone();
            tokio::spawn(work(pool, uri.clone(), Arc::clone(&taken), number))
        })
        .collect();
    let mut tally = Tally::default();
    for task in tasks {
        match task.await {
            Ok(part) => tally.add(part),
            Err(error) => talk::die(&error.to_string()),
        }
    }
    (tally, begun.elapsed())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cpus = std::env::args().nth(1).and_then(|cpus| cpus.parse().ok()).unwrap_or(1);
    let http2 = std::env::args().nth(2).is_some_and(|version| version == "http2");
    let setup = talk::hear_setup(http2);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(cpus).enable_all().build()?;
    let uri: Uri = setup.url.parse()?;
    let pools: Vec<Pool> = (0..setup.pools).map(|_| open(&setup, http2)).collect();
    talk::hear_orders(|number| runtime.block_on(go(&pools, &uri, setup.concurrency, number)));
    Ok(())
}
