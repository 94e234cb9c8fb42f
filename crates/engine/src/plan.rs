//! From a plan as said to a generator's configuration: everything is checked here, once.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use trueload_drive::{Choice, Settings};
use trueload_load::{Arrivals, Load, Stage, refill};
use trueload_wire::http1::Limits;
use trueload_wire::http1::client::Rules;

use crate::control::Failure;
use crate::generator::Config;
use crate::protocol::{
    ArrivalsPlan, Blob, DriverPlan, GeneratePlan, LoadPlan, PROTOCOL, PhasePlan, StagePlan,
};
use crate::serve::THREADS_MOST;

/// Connections of one engine, at most.
const CONNECTIONS_MOST: u32 = 10_000_000;
/// Requests in flight per connection, at most.
const PIPELINE_MOST: u32 = 65_536;
/// A tenth of the smallest send lag that the verdict warns of (design §6, `send-lag`: 250 us).
const SEND_QUANTUM_NS: u64 = 25_000;
/// The longest spin: beyond a scheduler's slice it saves nothing.
const SPIN_NS_MOST: u64 = 10_000_000;
/// Requests per second of an open loop, at most.
const RATE_MOST_PER_S: f64 = 1e9;
/// Bytes kept for one connection's requests in a row.
const BURST_BYTES_MOST: usize = 1 << 30;

/// Bodies, by their SHA-256 in hex.
#[derive(Debug, Default)]
pub(crate) struct Blobs(HashMap<String, Vec<u8>>);

impl Blobs {
    /// Takes a body, after a look whether it is the one that its name says.
    pub(crate) fn take(&mut self, blob: &Blob) -> Result<(), Failure> {
        let refused = |what: &str| Failure::Plan(format!("blob: {what}"));
        let bytes = STANDARD.decode(&blob.base64).map_err(|_| refused("base64: not base64"))?;
        let digest: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if digest != blob.sha256 {
            return Err(refused("sha256: is not that of the bytes"));
        }
        self.0.insert(digest, bytes);
        Ok(())
    }

    /// Whether everything that a plan names is here.
    pub(crate) fn complete(&self, plan: &GeneratePlan) -> bool {
        let named = [&plan.request.body_sha256, &plan.expect.body_sha256];
        named.into_iter().flatten().all(|name| self.0.contains_key(name))
    }

    fn get(&self, name: Option<&String>) -> Option<&Vec<u8>> {
        self.0.get(name?)
    }
}

/// Refuses what cannot be carried out, with the field's name.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    let within = |field: &str, value: u64, most: u64| match value {
        0 => Err(Failure::Plan(format!("{field}: must not be 0"))),
        value if value > most => Err(Failure::Plan(format!("{field}: must be at most {most}"))),
        _ => Ok(()),
    };
    if plan.protocol != PROTOCOL {
        return Err(Failure::Plan(format!("protocol: must be {PROTOCOL}")));
    }
    if plan.addresses.is_empty() {
        return Err(Failure::Plan("addresses: must name one".into()));
    }
    within("connections", plan.connections.into(), CONNECTIONS_MOST.into())?;
    within("pipeline", plan.pipeline.into(), PIPELINE_MOST.into())?;
    within("threads", plan.threads.into(), THREADS_MOST.into())?;
    within("timeout_ns", plan.timeout_ns, u64::MAX / 8)?;
    within("connect_timeout_ns", plan.connect_timeout_ns, u64::MAX / 8)?;
    within("connect_rate_per_s", plan.connect_rate_per_s.into(), 1_000_000_000)?;
    if let Some(refill) = plan.refill {
        within("refill", refill.into(), plan.pipeline.into())?;
    }
    check_spin(plan.spin_ns)?;
    check_request(plan)
}

/// Refuses a spin that would keep a thread from ever going to sleep.
pub(crate) fn check_spin(spin_ns: u64) -> Result<(), Failure> {
    if spin_ns > SPIN_NS_MOST {
        return Err(Failure::Plan(format!("spin_ns: must be at most {SPIN_NS_MOST}")));
    }
    Ok(())
}

/// How the drivers of a role are to work.
pub(crate) fn settings(driver: DriverPlan, spin_ns: u64) -> Settings {
    let choice = match driver {
        DriverPlan::Auto => Choice::Auto,
        DriverPlan::IoUring => Choice::Uring,
        DriverPlan::Epoll => Choice::Epoll,
    };
    Settings { choice, spin_ns }
}

/// Free places from which on a connection is filled again.
pub(crate) fn refill_of(plan: &GeneratePlan) -> usize {
    plan.refill.map_or_else(|| refill(plan.pipeline as usize), |places| places as usize)
}

/// Refuses a phase that cannot be carried out, with the field's name.
pub(crate) fn check_phase(phase: &PhasePlan) -> Result<(), Failure> {
    let refused = |what: String| Err(Failure::Plan(what));
    if phase.connections == Some(0) {
        return refused("connections: must not be 0".into());
    }
    let (field, stages, most) = match &phase.load {
        LoadPlan::Closed { active } => ("load.active", active, f64::from(CONNECTIONS_MOST)),
        LoadPlan::Open { stages, .. } if stages.is_empty() => {
            return refused("load.stages: must name one".into());
        }
        LoadPlan::Open { stages, .. } => ("load.stages", stages, RATE_MOST_PER_S),
    };
    for (index, stage) in stages.iter().enumerate() {
        if ![stage.from, stage.to].iter().all(|value| (0.0..=most).contains(value)) {
            return refused(format!("{field}[{index}]: from and to must be 0 to {most}"));
        }
    }
    Ok(())
}

/// When to send, as the load has it.
pub(crate) fn load(plan: &LoadPlan) -> Load {
    let stages = |plans: &[StagePlan]| -> Arc<[Stage]> {
        let stage = |plan: &StagePlan| Stage { ns: plan.ns, from: plan.from, to: plan.to };
        plans.iter().map(stage).collect()
    };
    match plan {
        LoadPlan::Closed { active } => Load::Closed { active: stages(active) },
        LoadPlan::Open { stages: plans, arrivals, seed } => Load::Open {
            stages: stages(plans),
            arrivals: match arrivals {
                ArrivalsPlan::Constant => Arrivals::Constant,
                ArrivalsPlan::Poisson => Arrivals::Poisson { seed: *seed },
            },
        },
    }
}

/// No part of a request may end its line: it would be another request.
fn check_request(plan: &GeneratePlan) -> Result<(), Failure> {
    let request = &plan.request;
    let visible = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let token = |text: &str| {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    };
    if !token(&request.method) {
        return Err(Failure::Plan("request.method: must be a token".into()));
    }
    if !visible(&request.path) {
        return Err(Failure::Plan("request.path: must be visible ASCII".into()));
    }
    for (index, (name, value)) in request.headers.iter().enumerate() {
        if !token(name) {
            return Err(Failure::Plan(format!("request.headers[{index}]: its name is no token")));
        }
        if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
            return Err(Failure::Plan(format!(
                "request.headers[{index}]: its value breaks the line"
            )));
        }
    }
    Ok(())
}

/// The request as written on the wire.
fn wire_request(plan: &GeneratePlan, blobs: &Blobs) -> Vec<u8> {
    let request = &plan.request;
    let mut bytes = format!("{} {} HTTP/1.1\r\n", request.method, request.path).into_bytes();
    for (name, value) in &request.headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    if let Some(body) = blobs.get(request.body_sha256.as_ref()) {
        bytes.extend_from_slice(body);
    }
    bytes
}

/// The configuration of one thread.
pub(crate) fn config(plan: &GeneratePlan, blobs: &Blobs, burst: &Arc<[u8]>, thread: u32) -> Config {
    let depth = plan.pipeline as usize;
    let rate = u64::from(plan.connect_rate_per_s);
    Config {
        addresses: plan.addresses.iter().map(|address| address.0.clone()).collect(),
        local_addresses: plan.local_addresses.clone(),
        burst: Arc::clone(burst),
        request_len: burst.len() / depth,
        depth,
        refill: refill_of(plan),
        close: plan.close,
        rules: rules(plan, blobs),
        timeout_ns: plan.timeout_ns,
        connect_timeout_ns: plan.connect_timeout_ns,
        send_quantum_ns: SEND_QUANTUM_NS,
        connect_interval_ns: 1_000_000_000 * u64::from(plan.threads) / rate,
        thread,
        threads: plan.threads,
    }
}

/// The request as often as one connection can have it in flight.
pub(crate) fn burst(plan: &GeneratePlan, blobs: &Blobs) -> Result<Arc<[u8]>, Failure> {
    let request = wire_request(plan, blobs);
    let depth = plan.pipeline as usize;
    if request.len().saturating_mul(depth) > BURST_BYTES_MOST {
        let most = BURST_BYTES_MOST >> 20;
        return Err(Failure::Plan(format!(
            "pipeline: so many requests of this size take more than {most} MiB"
        )));
    }
    Ok(Arc::from(request.repeat(depth)))
}

fn rules(plan: &GeneratePlan, blobs: &Blobs) -> Rules {
    let method = plan.request.method.as_str();
    Rules {
        statuses: plan.expect.statuses.clone(),
        body: blobs.get(plan.expect.body_sha256.as_ref()).cloned(),
        head_request: method == "HEAD",
        // RFC 9110 §9.2.2
        idempotent: matches!(method, "GET" | "HEAD" | "PUT" | "DELETE" | "OPTIONS" | "TRACE"),
        limits: Limits::default(),
    }
}
