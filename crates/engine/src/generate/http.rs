//! Makes the programs of a load over HTTP, in the plan's version, with or without sessions.

use trueload_load::Places;

use super::programs::{Programs, Threads};
use crate::blobs::Blobs;
use crate::failure::Failure;
use crate::generator::Protocol;
use crate::protocol::GeneratePlan;
use crate::{follow, request, scenario};

impl Programs<'_> {
    /// Makes a program for each thread, with the plan's version of HTTP.
    pub(super) fn http(&self, threads: &mut impl Threads) -> Result<(), Failure> {
        if !self.plan.scenario.is_empty() {
            return self.sessions(threads);
        }
        if self.plan.follow.is_some() {
            return match self.plan.http2 {
                None => self.version(threads, follow::http1),
                Some(terms) => self.version(threads, |plan, blobs, places| {
                    follow::http2(plan, terms, blobs, places)
                }),
            };
        }
        let Some(terms) = self.plan.http2 else {
            return self.version(threads, request::http1);
        };
        match terms.http1_pipeline {
            None => self
                .version(threads, |plan, blobs, places| request::http2(plan, terms, blobs, places)),
            Some(http1) => self.version(threads, |plan, blobs, places| {
                request::negotiated(plan, (terms, http1), blobs, places)
            }),
        }
    }

    fn sessions(&self, threads: &mut impl Threads) -> Result<(), Failure> {
        let unix_time = self.unix_time;
        match self.plan.http2 {
            None => self.version(threads, |plan, blobs, _| scenario::users(plan, blobs, unix_time)),
            Some(terms) => self.version(threads, |plan, blobs, _| {
                scenario::http2_users(plan, terms, blobs, unix_time)
            }),
        }
    }

    /// Makes a program for each thread, with what makes one version of HTTP for a plan and its
    /// places.
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
