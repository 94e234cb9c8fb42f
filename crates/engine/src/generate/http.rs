//! Makes the programs of a load over HTTP: the plan's version, with the plan's dialogue.

use std::cell::Cell;

use trueload_load::{Places, random};
use trueload_wire::chance::Chance;
use trueload_wire::websocket::conversation::{Manner, Shared};

use super::programs::{Programs, Threads};
use crate::blobs::Blobs;
use crate::failure::Failure;
use crate::generator::{
    Dialogue, Hops, Http, Http1, Http2, OverEither, OverHttp1, OverHttp2, OverWebSocket, Plain,
    Protocol, Users, Versions, WebSocket,
};
use crate::protocol::GeneratePlan;
use crate::{request, scenario};

impl Programs<'_> {
    /// Makes a program for each thread. Redirects and sessions are compiled once, for either version
    /// of HTTP. Plain requests are compiled for each, as they have to be fast.
    pub(super) fn http(&self, threads: &mut impl Threads) -> Result<(), Failure> {
        if scenario::is_conversation(self.plan) {
            let scenario = scenario::scenario(self.plan, self.blobs, self.unix_time)?;
            let manner = Manner {
                deflates: self.plan.deflate,
                ignores: self.plan.ignore_unexpected,
                replies: self.plan.replies.iter().cloned().collect(),
            };
            let (seed, own) = (self.plan.seed, Cell::new(0));
            return self.each(threads, || {
                let thread = self.plan.part.thread(own.replace(own.get() + 1));
                let chance = Chance::new(random(seed, u64::from(thread), 0));
                let run = scenario.script.stamps().then_some(scenario.run);
                let web_socket = WebSocket::new(Shared::new(manner.clone(), run, chance));
                OverWebSocket::new(web_socket, Users::new(scenario.clone()), false)
            });
        }
        if !self.plan.scenario.is_empty() {
            return self.version(threads, |plan, blobs, _| {
                let scenario = scenario::scenario(plan, blobs, self.unix_time)?;
                Ok(either(plan, move || Users::new(scenario.clone())))
            });
        }
        if self.plan.follow.is_some() {
            return self.version(threads, |plan, blobs, places| {
                let (sending, rule) = (request::sending(plan, blobs, places)?, plan.stream.clone());
                let (most, secure) = (plan.follow.unwrap_or(0), plan.tls.is_some());
                let hops = move || Hops::new(most, secure, request::own(&sending), rule.clone());
                Ok(either(plan, hops))
            });
        }
        match self.plan.http2 {
            None => self.version(threads, |plan, blobs, places| {
                let plain = plain(plan, blobs, places)?;
                Ok(move || OverHttp1::new(Http1::default(), plain(), false))
            }),
            Some(terms) if terms.http1_pipeline.is_none() => {
                self.version(threads, |plan, blobs, places| {
                    let plain = plain(plan, blobs, places)?;
                    Ok(move || OverHttp2::new(Http2::new(terms), plain(), false))
                })
            }
            Some(_) => self.version(threads, |plan, blobs, places| {
                Ok(either(plan, plain(plan, blobs, places)?))
            }),
        }
    }

    /// Makes a program for each thread, with what makes its protocol for a plan and its places.
    fn version<P: Protocol + Send + 'static, M: Fn() -> P>(
        &self,
        threads: &mut impl Threads,
        version: impl Fn(&GeneratePlan, &Blobs, Option<Places>) -> Result<M, Failure>,
    ) -> Result<(), Failure>
    where
        P::Client: Send,
    {
        if let Some(division) = self.division {
            return self.each_of_origins(threads, division, version);
        }
        self.each(threads, version(self.plan, self.blobs, None)?)
    }
}

/// What makes the protocol of each thread, from what makes its dialogue.
fn either<D: Dialogue, T: Fn() -> D>(
    plan: &GeneratePlan,
    dialogue: T,
) -> impl Fn() -> OverEither<D> + use<D, T> {
    let plan = plan.clone();
    move || Http::new(versions(&plan), dialogue(), plan.close)
}

/// What makes the plain dialogue of each thread.
fn plain(
    plan: &GeneratePlan,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<impl Fn() -> Plain + use<>, Failure> {
    let (sending, rule) = (request::sending(plan, blobs, places)?, plan.stream.clone());
    Ok(move || Plain::new(request::own(&sending), rule.clone()))
}

/// The versions that the connections of a plan may speak.
fn versions(plan: &GeneratePlan) -> Versions {
    let Some(terms) = plan.http2 else { return Versions::http1() };
    let http2 = Http2::new(terms);
    match terms.http1_pipeline {
        None => Versions::http2(http2),
        Some(most_http1) => Versions::either(http2, most_http1 as usize, plan.pipeline as usize),
    }
}
