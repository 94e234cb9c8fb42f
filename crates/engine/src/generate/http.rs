//! Starts the threads of a load over HTTP, in the plan's version, with or without sessions.

use trueload_drive::Driver;
use trueload_load::Places;
use trueload_wire::tls::client;

use super::Role;
use crate::blobs::Blobs;
use crate::failure::Failure;
use crate::generator::Protocol;
use crate::protocol::GeneratePlan;
use crate::{follow, request, scenario};

impl Role {
    /// Starts a thread for each driver, with the plan's version of HTTP.
    pub(super) fn start_http(
        &mut self,
        drivers: Vec<Driver>,
        tls: Option<&client::Options>,
    ) -> Result<(), Failure> {
        if !self.plan.scenario.is_empty() {
            return self.start_sessions(drivers, tls);
        }
        if self.plan.follow.is_some() {
            return match self.plan.http2 {
                None => self.start_version(drivers, tls, follow::http1),
                Some(terms) => self.start_version(drivers, tls, |plan, blobs, places| {
                    follow::http2(plan, terms, blobs, places)
                }),
            };
        }
        let Some(terms) = self.plan.http2 else {
            return self.start_version(drivers, tls, request::http1);
        };
        match terms.http1_pipeline {
            None => self.start_version(drivers, tls, |plan, blobs, places| {
                request::http2(plan, terms, blobs, places)
            }),
            Some(http1) => self.start_version(drivers, tls, |plan, blobs, places| {
                request::negotiated(plan, (terms, http1), blobs, places)
            }),
        }
    }

    fn start_sessions(
        &mut self,
        drivers: Vec<Driver>,
        tls: Option<&client::Options>,
    ) -> Result<(), Failure> {
        let unix_time = self.clock.unix_time_at_0();
        match self.plan.http2 {
            None => self.start_version(drivers, tls, |plan, blobs, _| {
                scenario::users(plan, blobs, unix_time)
            }),
            Some(terms) => self.start_version(drivers, tls, |plan, blobs, _| {
                scenario::http2_users(plan, terms, blobs, unix_time)
            }),
        }
    }

    /// Starts a thread for each driver, with what makes one version of HTTP for a plan and its
    /// places.
    fn start_version<P: Protocol + Send + 'static, M: Fn() -> P>(
        &mut self,
        drivers: Vec<Driver>,
        tls: Option<&client::Options>,
        version: impl Fn(&GeneratePlan, &Blobs, Option<Places>) -> Result<M, Failure>,
    ) -> Result<(), Failure>
    where
        P::Client: Send,
    {
        if self.division.is_some() {
            return self.start_parts(drivers, version);
        }
        let make = version(&self.plan, &self.blobs, None)?;
        self.start(drivers, tls, make)
    }
}
