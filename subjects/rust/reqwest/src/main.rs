//! HTTP client on reqwest with tokio: a `Client` for each pool, and a task for each request that
//! is open at once. With `http2` as its second argument, after CPUS, it speaks HTTP/2 in plain
//! text.
//!
//! A `Client` keeps connections but does not limit them. So each pool has a semaphore, for which
//! its requests wait, as is usual with this library.

mod talk;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::header::{CONNECTION, HeaderMap, HeaderValue};
use reqwest::{Client, StatusCode};
use tokio::sync::Semaphore;

use talk::{Setup, Tally, class_of};

#[derive(Clone)]
struct Pool {
    client: Client,
    room: Arc<Semaphore>,
}

fn open(setup: &Setup, http2: bool) -> Result<Pool, reqwest::Error> {
    let mut headers = HeaderMap::new();
    if !setup.keep_alive {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    let builder = Client::builder();
    let builder = if http2 { builder.http2_prior_knowledge() } else { builder };
    let client = builder
        .timeout(Duration::from_millis(setup.timeout_ms))
        .pool_max_idle_per_host(if setup.keep_alive { setup.pool_size } else { 0 })
        .pool_idle_timeout(None)
        .default_headers(headers)
        .no_proxy()
        .build()?;
    Ok(Pool { client, room: Arc::new(Semaphore::new(setup.pool_size * setup.pipelining)) })
}

async fn get(pool: &Pool, url: &str) -> Result<(), &'static str> {
    // An error is impossible, because the semaphore is never closed.
    let _room = pool.room.acquire().await.map_err(|_| "other")?;
    let answer = pool.client.get(url).send().await.map_err(|error| class(&error))?;
    let status = answer.status();
    answer.bytes().await.map_err(|error| class(&error))?;
    if status == StatusCode::OK { Ok(()) } else { Err("status") }
}

fn class(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        return "timeout.total";
    }
    if let Some(class) = class_of_http2(error) {
        return class;
    }
    match class_of(error) {
        // hyper reports this if the connection ended before the answer was complete.
        "other" if error.is_request() && !error.is_connect() => "empty",
        name => name,
    }
}

/// Returns the failure class of an HTTP/2 error, which comes from the library h2. A request
/// without a connection waited for one that another request failed to open.
fn class_of_http2(error: &reqwest::Error) -> Option<&'static str> {
    if format!("{error:?}").contains("CheckoutNoLongerWanted") {
        return Some("connect.refused");
    }
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = at {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return if error.is_reset() {
                Some("h2.stream")
            } else if error.is_go_away() {
                Some("h2.goaway")
            } else {
                None
            };
        }
        at = error.source();
    }
    None
}

async fn work(pool: Pool, url: Arc<str>, taken: Arc<AtomicUsize>, number: usize) -> Tally {
    let mut tally = Tally::default();
    while taken.fetch_add(1, Ordering::Relaxed) < number {
        let sent = Instant::now();
        match get(&pool, &url).await {
            Ok(()) => tally.latencies.push(sent.elapsed()),
            Err(class) => *tally.failed.entry(class).or_default() += 1,
        }
    }
    tally
}

async fn go(pools: &[Pool], setup: &Setup, number: usize) -> (Tally, Duration) {
    let (url, taken) = (Arc::from(setup.url.as_str()), Arc::new(AtomicUsize::new(0)));
    let begun = Instant::now();
    let tasks: Vec<_> = (0..setup.concurrency)
        .map(|i| {
            let pool = pools[i % pools.len()].clone();
            tokio::spawn(work(pool, Arc::clone(&url), Arc::clone(&taken), number))
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
    let pools: Vec<Pool> = (0..setup.pools).map(|_| open(&setup, http2)).collect::<Result<_, _>>()?;
    talk::hear_orders(|number| runtime.block_on(go(&pools, &setup, number)));
    Ok(())
}
