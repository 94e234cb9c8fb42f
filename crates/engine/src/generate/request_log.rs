//! The log of single requests of a phase: the rows of all threads as lines for the front.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use trueload_meter::{Class, Logged};

use crate::failure::Failure;
use crate::generator::DoneReport;
use crate::lines::emit;
use crate::protocol::FromEngine;

/// A line of half a MB.
const ROWS_OF_LINE: usize = 8_192;

/// Reports the rows of a phase, if it was to log them.
pub(super) fn report(id: &str, done: &mut [(u32, DoneReport)]) -> Result<(), Failure> {
    let started_ns = done.iter().map(|(_, done)| done.started_ns).min().unwrap_or(0);
    let mut logs: Vec<_> = done.iter_mut().filter_map(|(_, done)| done.log.take()).collect();
    let Some(level) = logs.iter().map(|log| log.level).max() else { return Ok(()) };
    let mut ended = logs.iter().map(|log| log.ended).sum();
    let rows = logs.iter_mut().flat_map(|log| log.rows());
    let mut rows: Vec<Logged> = rows.filter(|row| row.level >= level).map(|row| *row).collect();
    rows.sort_unstable_by_key(|row| row.due_ns);
    let mut lines = rows.chunks(ROWS_OF_LINE);
    loop {
        let mut bytes = Vec::new();
        let these = lines.next().unwrap_or_default();
        these.iter().for_each(|row| row.write(started_ns, &mut bytes));
        let (id, rows, classes) = (id.to_owned(), STANDARD.encode(bytes), Class::ALL.to_vec());
        emit(&FromEngine::RequestRows { id, ended, level, classes, rows })?;
        ended = 0;
        if lines.len() == 0 {
            return Ok(());
        }
    }
}
