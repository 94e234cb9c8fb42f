//! Reads a plan's data or recorded traffic beside the engine's other work: a large file takes
//! seconds, in which the front must be answered.

use std::sync::mpsc::Sender;
use trueload_wire::message::{Template, Texts};

use crate::blobs::Blobs;
use crate::data::{self, Source, Uses};
use crate::failure::{Failure, refuse_if, refused};
use crate::protocol::{DataPlan, GeneratePlan};
use crate::role::Event;
use crate::{replay, request, threads};

/// Most columns of data.
const COLUMNS_MOST: usize = 1000;

/// The reading of a plan's data, or of its recorded traffic.
#[derive(Debug, Default)]
pub(crate) struct Loading {
    begun: bool,
}

impl Loading {
    /// Whether everything has been read, or there is nothing. The first call begins to read, and its
    /// end is an event; all pieces must have come.
    pub(crate) fn is_over(
        &mut self,
        plan: &GeneratePlan,
        blobs: &mut Blobs,
        sink: &Sender<Event>,
    ) -> Result<bool, Failure> {
        let is_over = match (&plan.data, &plan.replay) {
            (Some(_), _) => blobs.rows().is_some(),
            (None, Some(_)) => blobs.replay().is_some(),
            (None, None) => true,
        };
        if is_over || std::mem::replace(&mut self.begun, true) {
            return Ok(is_over);
        }
        let sink = sink.clone();
        if let Some(data) = plan.data.clone() {
            let source = match &data.path {
                Some(path) => Source::File(path.clone()),
                None => Source::Pieces(blobs.take_pieces(&data.blobs)),
            };
            let uses = uses(plan, &data, blobs);
            threads::spawn("data", move || {
                let _ = sink.send(Event::Data(data::read(&data, source, uses)));
            })?;
        } else if let Some(recorded) = &plan.replay {
            let (pieces, plan) = (replay::take(recorded, blobs), plan.clone());
            threads::spawn("replay", move || {
                let _ = sink.send(Event::Replay(replay::read(&plan, pieces)));
            })?;
        }
        Ok(false)
    }
}

/// Reads a plan's data at once, and waits for its end; all pieces must have come.
pub(crate) fn read_now(plan: &GeneratePlan, blobs: &mut Blobs) -> Result<(), Failure> {
    let Some(data) = &plan.data else { return Ok(()) };
    let source = Source::Pieces(blobs.take_pieces(&data.blobs));
    let uses = uses(plan, data, blobs);
    blobs.keep_rows(data::read(data, source, uses)?);
    Ok(())
}

/// How a plan's requests use each column of its data.
fn uses(plan: &GeneratePlan, data: &DataPlan, blobs: &Blobs) -> Uses {
    let mut uses = Uses::none(data.columns.len());
    let names = request::names(plan);
    let taken = plan.scenario.iter().flat_map(|step| &step.take).map(|take| take.value.clone());
    let taken: Vec<_> = taken.collect();
    for (_, request, _) in request::all(plan).filter(|(_, request, _)| request.template) {
        let body = blobs.get(request.body_sha256.as_ref()).map(Vec::as_slice);
        let (method, path) = (request.method.as_str(), request.path.as_str());
        let texts = Texts { method, path, headers: &request.headers, body };
        let template = if plan.scenario.is_empty() {
            Template::new(&texts, Some(&names))
        } else {
            Template::of_step(&texts, &names, &taken)
        };
        template.mark_columns(&mut uses.in_header, &mut uses.as_json);
        if template.raw_columns().next().is_some() {
            uses.raw.push(template);
        }
    }
    uses
}

/// Refuses data that cannot be read as the plan has it, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    let Some(data) = &plan.data else { return Ok(()) };
    refuse_if!(plan.exchange.is_some(), "data: excludes exchange");
    if data.path.is_some() != data.blobs.is_empty() {
        return refused("data.path: either this or blobs must be given");
    }
    if !(1..=COLUMNS_MOST).contains(&data.columns.len()) {
        return refused(format_args!("data.columns: must be 1 to {COLUMNS_MOST}"));
    }
    Ok(())
}
